"""cluster.yaml is what Ray takes, and does on an account and on nodes what its documents say.

No network, no account: shell commands are really run, with stand-ins for what would reach out.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, NamedTuple

import botocore.session
import pytest
import yaml
from botocore import xform_name
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from ray.autoscaler import tags
from ray.autoscaler._private.command_runner import _with_interactive
from ray.autoscaler._private.util import prepare_config, validate_config

from benchmarks.support.mlflow_server import tracking_server
from study.launch import cluster
from tests.architecture.test_cluster_docs import DOCUMENT, blocks
from tests.conftest import PROJECT

FILE = PROJECT / "cluster.yaml"
ACCOUNT = PROJECT / "examples" / "aws" / "account.sh"
KUBERAY = PROJECT / "examples" / "kuberay" / "rayjob.yaml"
PACKAGE = tomllib.loads((PROJECT / "pyproject.toml").read_text())
BUCKET = "my-attention-study"
MY_ADDRESS = "203.0.113.7"  # of a network for documentation

OTHER = {
    "region": ("us-west-2", "eu-central-1"),
    "gpu_instance": ("g6.xlarge", "g5.2xlarge"),
    "max_gpu_nodes": ("4", "9"),
    "bucket": (BUCKET, "another-bucket"),
    "key": ("attention-study", "another-key"),
}
"""Each of the five lines: its value, and another one."""


def prepared(text: str) -> dict[str, Any]:
    """As `ray up` fills it out."""
    return prepare_config(yaml.safe_load(text))


CLUSTER = prepared(FILE.read_text())
NODES = [kind["node_config"] for kind in CLUSTER["available_node_types"].values()]


# What it asks for


def test_ray_takes_it():
    validate_config(CLUSTER)


def test_five_lines_are_all_that_a_reader_changes():
    assert CLUSTER["metadata"].keys() == OTHER.keys()
    text = FILE.read_text()
    for name, (old, new) in OTHER.items():
        line = rf"^(    {name}: .*?){old}"
        text, found = re.subn(line, rf"\g<1>{new}", text, flags=re.MULTILINE)
        assert found == 1
    changed = prepared(text)
    spot = changed["available_node_types"]["gpu-spot"]
    assert changed["max_workers"] == spot["max_workers"] == 9
    assert changed["provider"]["key_pair"]["key_name"] == "another-key"
    said = json.dumps(changed)
    for name in ("region", "gpu_instance", "bucket"):
        old, new = OTHER[name]
        assert old not in said
        assert new in said


def test_no_node_must_be_there_and_each_keeps_what_is_its_own():
    assert not any(kind["min_workers"] for kind in CLUSTER["available_node_types"].values())
    for node in NODES:
        assert node["MetadataOptions"]["HttpTokens"] == "required"
        assert all(disk["Ebs"]["Encrypted"] for disk in node["BlockDeviceMappings"])


def test_no_value_looks_like_a_secret():
    text = "".join(file.read_text() for file in (FILE, DOCUMENT, ACCOUNT, KUBERAY))
    assert not re.search(
        r"\b(AKIA|ASIA)[0-9A-Z]{16}\b|BEGIN [A-Z ]*PRIVATE KEY|://[^/\s]*:[^/\s]*@", text
    )
    assert not re.search(r"\b[0-9a-f]{32,}\b", text)
    assert not re.search(r"(?i)(password|secret|token|access_key)\w*\s*[=:]\s*['\"]?\w{12,}", text)


def test_the_project_and_the_token_are_copied_and_nothing_else():
    packages = PACKAGE["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    project = {*packages, "pyproject.toml", "hatch_build.py", PACKAGE["project"]["readme"]}
    copied = {f"~/attention-study/{name}": name for name in project}
    assert CLUSTER["file_mounts"] == {**copied, "~/.ray/auth_token": "~/.ray/auth_token"}


def test_every_package_is_pinned_to_the_version_tested():
    """Of all that `uv sync` installs here: nodes have no others."""
    constraints = map(Requirement, PACKAGE["tool"]["uv"]["constraint-dependencies"])
    pins = {canonicalize_name(pin.name): str(pin.specifier) for pin in constraints}
    tested = {canonicalize_name(each.name): f"=={each.version}" for each in distributions()}
    del tested[PACKAGE["project"]["name"]]
    assert {name: pins.get(name) for name in tested} == tested


# The shell commands

STAND_IN = """#!{python}
import json, os, pathlib, sys, time
name, *words = sys.argv
words = [pathlib.Path(w[7:]).read_text() if w.startswith("file://") else w for w in words]
with open({calls!r}, "a") as file:
    call = [pathlib.Path(name).name, *words], os.getcwd(), dict(os.environ)
    file.write(json.dumps(call) + "\\n")
print({prints!r})
if name.endswith("mlflow"):
    time.sleep(9)  # it serves
"""


class Call(NamedTuple):
    """What a command was called with, where, and in which environment."""

    words: list[str]
    folder: str
    environment: dict[str, str]


def called(
    folder: Path, commands: list[str], names: tuple[str, ...], prints: str = "", **settings: str
) -> list[Call]:
    """Runs commands in a folder that is their home, and gives the calls of stand-ins."""
    programs, calls = folder / "attention-study" / ".venv" / "bin", folder / "calls"
    programs.mkdir(parents=True)
    for name in names:
        text = STAND_IN.format(python=sys.executable, calls=str(calls), prints=prints)
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    path = f"{programs}:/usr/local/bin:/usr/bin:/bin"
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command], env={"HOME": str(folder), "PATH": path, **settings},
            cwd=folder, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)
    return [Call(*json.loads(line)) for line in calls.read_text().splitlines()]


@pytest.mark.parametrize(
    ("part", "option"),
    [("head", "--dashboard-host=127.0.0.1"), ("worker", "--address=10.0.0.9:6379")],
)
def test_ray_starts_with_the_token_the_project_and_its_environment(part, option, tmp_path):
    """However often Ray runs setup and start of a node."""
    token = tmp_path / ".ray" / "auth_token"
    token.parent.mkdir()
    token.write_text("x")
    ours = [*CLUSTER[f"{part}_setup_commands"], *CLUSTER[f"{part}_start_ray_commands"]]
    commands = [shlex.split(_with_interactive(command)[-1])[0] for command in 2 * ours]
    calls = called(tmp_path, commands, ("ray", "uv", "mlflow", "curl"), RAY_HEAD_IP="10.0.0.9")
    settings = {**cluster._WORKER_SETTINGS, **cluster.SETTINGS}
    shared = {name: value for name, value in settings.items() if not name.startswith("TUNE_")}
    shared.pop("RAY_AIR_NEW_OUTPUT")  # Tune's, which drivers import
    starts = [call for call in calls if call.words[:2] == ["ray", "start"]]
    assert len(starts) == 2
    for words, folder, environment in starts:
        assert folder == str(tmp_path / "attention-study")
        assert environment["RAY_AUTH_MODE"] == "token"
        assert shared.items() <= environment.items()
        assert environment["STUDY_BUCKET"] == f"s3://{BUCKET}"
        assert environment["PATH"].startswith(f"{folder}/.venv/bin:")
        assert ("MLFLOW_TRACKING_URI" in environment) == (part == "head")
        assert option in words
    served = [call.words[2:] for call in calls if call.words[:2] == ["mlflow", "server"]]
    assert len(served) == (part == "head")  # once, though it is started twice
    of_tests = tracking_server(tmp_path, "")._words  # a real one, which tests/faults starts
    for words in served:
        assert {word for word in words if word[:2] == "--"} <= {*of_tests}
        assert words[:2] == ["--host", "127.0.0.1"]
        assert words[-2:] == ["--artifacts-destination", f"s3://{BUCKET}/mlflow"]
    assert token.stat().st_mode & 0o077 == 0
    assert (tmp_path / ".bashrc").read_text().count("study.env") == 1


# The account


@pytest.fixture(scope="module")
def account(tmp_path_factory) -> list[tuple[str, dict[str, str]]]:
    """What examples/aws/account.sh asks of AWS after the document's exports: operation, options.

    AWS knows them all.
    """
    (exports,) = (block for block in blocks() if "export BUCKET" in block)
    script = [exports + ACCOUNT.read_text()]
    calls = called(tmp_path_factory.mktemp("account"), script, ("aws", "curl"), MY_ADDRESS)
    words = [call.words[1:] for call in calls if call.words[0] == "aws"]
    asked = []
    for service, operation, *options in words:
        if service in ("sts", "s3"):  # who asks, and the bucket
            assert options in ([], [f"s3://{BUCKET}"])
            continue
        model = botocore.session.get_session().get_service_model(service)
        (name,) = (n for n in model.operation_names if xform_name(n, "-") == operation)
        known = model.operation_model(name).input_shape.members
        assert {*options[::2]} <= {f"--{xform_name(each, '-')}" for each in known}
        asked.append((operation, dict(zip(options[::2], options[1::2], strict=True))))
    return asked


def test_the_account_has_what_nodes_name_and_lets_in_one_address(
    account,
):
    made = {of["--instance-profile-name"] for name, of in account if "create-inst" in name}
    assert made == {node["IamInstanceProfile"]["Name"] for node in NODES}
    (group,) = (of["--group-name"] for name, of in account if name == "create-security-group")
    assert CLUSTER["provider"]["security_group"]["GroupName"] == group
    (rules,) = (of["--ip-permissions"] for _, of in account if "--ip-permissions" in of)
    among_nodes, of_ssh = json.loads(rules)
    assert among_nodes == {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupName": group}]}
    assert (of_ssh["FromPort"], of_ssh["ToPort"]) == (22, 22)
    assert of_ssh["IpRanges"] == [{"CidrIp": f"{MY_ADDRESS}/32"}]


def test_the_head_may_do_what_it_must_and_nodes_the_bucket_only(
    account,
):
    policies = {
        (of["--role-name"], of["--policy-name"]): json.loads(of["--policy-document"])["Statement"]
        for operation, of in account
        if operation == "put-role-policy"
    }
    of_head, of_node = "attention-study-head", "attention-study-node"
    assert policies.keys() == {(of_node, "bucket"), (of_head, "bucket"), (of_head, "nodes")}
    for statement in policies[of_node, "bucket"]:
        for action in re.findall(r"[^'\[\], ]+", str(statement["Action"])):
            assert re.fullmatch(r"s3:\w+", action)
        assert statement["Resource"].removesuffix("/*") == f"arn:aws:s3:::{BUCKET}"
    head = policies[of_head, "nodes"]
    tag = f"aws:ResourceTag/{tags.TAG_RAY_CLUSTER_NAME}"
    own = {"StringEquals": {tag: CLUSTER["cluster_name"]}}
    new = {"StringEquals": {"ec2:CreateAction": "RunInstances"}}
    # Whoever may tag any instance may end it, too.
    conditions = {"ec2:TerminateInstances": [own], "ec2:CreateTags": [new, own]}
    for action, expected in conditions.items():
        assert [s.get("Condition") for s in head if action in s["Action"]] == expected
    passed = [s["Resource"] for s in head if "iam:PassRole" in s["Action"]]
    assert passed == [f"arn:aws:iam::*:role/{of_node}"]
