"""examples/kuberay/rayjob.yaml is what KubeRay and Kubernetes take, and fits image and code.

No cluster runs here. A schema of KubeRay's fields and Kubernetes' own schema stand for one.
"""

from __future__ import annotations

import shlex
import tomllib
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

from study.launch import cluster
from study.run_options import requested
from tests.architecture.test_cluster_docs import DOCUMENT
from tests.architecture.test_image import instructions
from tests.conftest import PROJECT

FILE = PROJECT / "examples" / "kuberay" / "rayjob.yaml"
SCHEMA = yaml.safe_load((PROJECT / "tests/made_up/rayjob.schema.yaml").read_text())
KUBERNETES = "1.37"

ACCOUNT, JOB = yaml.safe_load_all(FILE.read_text())
SPEC = JOB["spec"]
CLUSTER = SPEC["rayClusterSpec"]


TEMPLATES = [
    *(each["template"] for each in (CLUSTER["headGroupSpec"], *CLUSTER["workerGroupSpecs"])),
    SPEC["submitterPodTemplate"],
]
"""The pods of a RayJob: head, workers and the one that submits."""


def container(template: dict[str, Any]) -> dict[str, Any]:
    (only,) = template["spec"]["containers"]
    return only


def test_kuberay_and_kubernetes_take_it():
    jsonschema.validate(JOB, SCHEMA, jsonschema.Draft202012Validator)
    own = CLUSTER["autoscalerOptions"]["securityContext"]
    sidecar = {"containers": [{"name": "autoscaler", "securityContext": own}]}
    for spec in (*(each["spec"] for each in TEMPLATES), sidecar):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)
    kubernetes_validate.validate(ACCOUNT, KUBERNETES, strict=True)


def test_it_names_the_versions_and_the_user_of_the_image():
    pins = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["uv"]
    assert f"ray=={CLUSTER['rayVersion']}" in pins["constraint-dependencies"]
    images = {container(each)["image"] for each in TEMPLATES}
    assert len(images) == 1
    for each in TEMPLATES:
        assert str(each["spec"]["securityContext"]["runAsUser"]) == instructions("USER")[0]


def test_every_container_may_run_in_a_restricted_namespace():
    """What Kubernetes' restricted pod security standard asks for."""
    own_rights = [CLUSTER["autoscalerOptions"]["securityContext"]]  # beside the head
    for each in TEMPLATES:
        pod = each["spec"]["securityContext"]
        assert pod["runAsNonRoot"]
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        own_rights.append(container(each)["securityContext"])
    for own in own_rights:
        assert not own["allowPrivilegeEscalation"]
        assert own["capabilities"] == {"drop": ["ALL"]}


def test_pods_add_only_what_the_image_has_not():
    """The settings of Ray are the image's, where `test_image.py` compares them with the code's."""
    added = [
        (pair["name"], pair["value"])
        for each in TEMPLATES
        for pair in container(each).get("env", ())
    ]
    assert added == [("RAY_JOB_STOP_WAIT_TIME_S", "60")]
    of_image = {line.split("=")[0] for line in instructions("ENV")}
    assert not {*cluster.SETTINGS, *cluster._WORKER_SETTINGS} & {name for name, _ in added}
    assert not of_image & {name for name, _ in added}


def test_pods_that_use_the_bucket_have_the_account():
    name = ACCOUNT["metadata"]["name"]
    head, worker, submitter = (each["spec"] for each in TEMPLATES)
    assert head["serviceAccountName"] == worker["serviceAccountName"] == name
    assert "serviceAccountName" not in submitter
    assert CLUSTER["authOptions"] == {"mode": "token"}


def test_the_command_goes_on_wherever_a_pod_was_lost():
    """Nothing that lasts is on a pod; who stops, fails or is lost is tried again."""
    python, module, name, *arguments = shlex.split(SPEC["entrypoint"])
    assert (python, module, name) == ("python", "-m", "study.run")
    request = requested(arguments)
    assert request.verb == "train"
    assert request.results.startswith("s3://")
    assert str(request.places.cache_dir).startswith("s3://")
    assert request.tracking == "none"
    assert request.max_retries > 3
    assert SPEC["backoffLimit"] > 0
    assert SPEC["submitterConfig"]["backoffLimit"] > 0
    assert SPEC["shutdownAfterJobFinishes"]
    head = TEMPLATES[0]
    (wait,) = (each["value"] for each in container(head)["env"])
    assert head["spec"]["terminationGracePeriodSeconds"] >= int(wait)


def test_it_takes_the_image_that_the_document_pushes():
    assert f"docker push {container(TEMPLATES[0])['image']}\n" in DOCUMENT.read_text()
