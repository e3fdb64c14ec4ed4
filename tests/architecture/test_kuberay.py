"""examples/kuberay/rayjob.yaml is what KubeRay and Kubernetes take, and fits image and code.

No cluster runs here. A schema of KubeRay's fields and Kubernetes' own schema stand for one.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

from study.launch import cluster
from study.request import Request
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


def templates(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The pods of a RayJob: head, workers and the one that submits."""
    spec = job["spec"]["rayClusterSpec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        yield group["template"]
    yield job["spec"]["submitterPodTemplate"]


def require_valid(job: dict[str, Any]) -> None:
    """Raises what a cluster would refuse."""
    jsonschema.validate(job, SCHEMA, jsonschema.Draft202012Validator)
    options = job["spec"]["rayClusterSpec"]["autoscalerOptions"]
    sidecar = {"name": "autoscaler", "securityContext": options["securityContext"]}
    for spec in (*(each["spec"] for each in templates(job)), {"containers": [sidecar]}):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def container(template: dict[str, Any]) -> dict[str, Any]:
    (only,) = template["spec"]["containers"]
    return only


def test_kuberay_and_kubernetes_take_it():
    require_valid(JOB)
    kubernetes_validate.validate(ACCOUNT, KUBERNETES, strict=True)


def test_it_names_the_versions_and_the_user_of_the_image():
    pins = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["uv"]
    assert f"ray=={CLUSTER['rayVersion']}" in pins["constraint-dependencies"]
    images = {container(each)["image"] for each in templates(JOB)}
    assert len(images) == 1
    for each in templates(JOB):
        assert str(each["spec"]["securityContext"]["runAsUser"]) == instructions("USER")[0]


def test_every_container_may_run_in_a_restricted_namespace():
    """What Kubernetes' restricted pod security standard asks for."""
    own_rights = [CLUSTER["autoscalerOptions"]["securityContext"]]  # beside the head
    for each in templates(JOB):
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
        for each in templates(JOB)
        for pair in container(each).get("env", ())
    ]
    assert added == [("RAY_JOB_STOP_WAIT_TIME_S", "60")]
    of_image = {line.split("=")[0] for line in instructions("ENV")}
    assert not {*cluster.SETTINGS, *cluster._WORKER_SETTINGS} & {name for name, _ in added}
    assert not of_image & {name for name, _ in added}


def test_pods_that_use_the_bucket_have_the_account():
    name = ACCOUNT["metadata"]["name"]
    head, worker, submitter = (each["spec"] for each in templates(JOB))
    assert head["serviceAccountName"] == worker["serviceAccountName"] == name
    assert "serviceAccountName" not in submitter
    assert CLUSTER["authOptions"] == {"mode": "token"}


def asked() -> Request:
    """What the job's command asks for."""
    python, module, name, *arguments = shlex.split(SPEC["entrypoint"])
    assert (python, module, name) == ("python", "-m", "study.run")
    return requested(arguments)


def test_the_command_goes_on_wherever_a_pod_was_lost():
    """Nothing that lasts is on a pod; who stops, fails or is lost is tried again."""
    request = asked()
    assert request.verb == "train"
    assert request.results.startswith("s3://")
    assert str(request.places.cache_dir).startswith("s3://")
    assert request.tracking == "none"
    assert request.max_retries > 3
    assert SPEC["backoffLimit"] > 0
    assert SPEC["submitterConfig"]["backoffLimit"] > 0
    assert SPEC["shutdownAfterJobFinishes"]
    head, *_ = templates(JOB)
    (wait,) = (each["value"] for each in container(head)["env"])
    assert head["spec"]["terminationGracePeriodSeconds"] >= int(wait)


def test_a_gpu_node_is_there_for_the_plan_to_see():
    (group,) = CLUSTER["workerGroupSpecs"]
    assert 1 <= group["minReplicas"] <= group["maxReplicas"]


def test_it_takes_the_image_that_the_document_pushes():
    assert f"docker push {container(next(templates(JOB)))['image']}\n" in DOCUMENT.read_text()
