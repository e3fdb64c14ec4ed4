"""cluster.yaml, by Ray's own launcher and a made-up AWS.

No network, no account: moto stands for AWS. Shell commands are really run, with stand-ins for what
would reach out.
"""

from __future__ import annotations

import copy
import functools
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from botocore import xform_name
from moto import mock_aws
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from ray.autoscaler import tags
from ray.autoscaler._private.aws.node_provider import AWSNodeProvider
from ray.autoscaler._private.command_runner import _with_interactive
from ray.autoscaler._private.util import prepare_config, validate_config

from benchmarks.support.mlflow_server import tracking_server
from study.launch import cluster
from tests.architecture.test_cluster_docs import DOCUMENT, blocks
from tests.conftest import PROJECT

FILE = PROJECT / "cluster.yaml"
ACCOUNT = PROJECT / "examples" / "aws" / "account.sh"
KUBERAY = PROJECT / "examples" / "kuberay" / "rayjob.yaml"
MY_ADDRESS = "203.0.113.7"  # of a network for documentation

OTHER = {
    "region": ("us-west-2", "eu-central-1"),
    "gpu_instance": ("g6.xlarge", "g5.2xlarge"),
    "max_gpu_nodes": ("4", "9"),
    "bucket": ("my-attention-study", "another-bucket"),
    "key": ("attention-study", "another-key"),
}
"""Each of the five lines: its value, and another one."""


def read(text: str | None = None) -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text() if text is None else text)


def validated(config: dict[str, Any]) -> dict[str, Any]:
    """As `ray up` fills it out, and validates it."""
    full = prepare_config(copy.deepcopy(config))
    validate_config(full)
    return full


def prepared(config: dict[str, Any]) -> dict[str, Any]:
    """The same with what AWS says of the instance types."""
    return AWSNodeProvider.fillout_available_node_types_resources(validated(config))


@functools.cache
def filled() -> dict[str, Any]:
    """cluster.yaml `prepared`: once, because the made-up AWS lists its instance types slowly."""
    return prepared(read())


def unwrapped(command: str) -> str:
    """A command as the shell of a node gets it from Ray."""
    return shlex.split(_with_interactive(command)[-1])[0]


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A made-up AWS, and a home where Ray may write the key that it makes."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    with mock_aws():
        yield home


# By Ray's launcher and a made-up AWS


@pytest.mark.faults
def test_the_commands_of_the_document_and_the_launcher_start_every_kind_of_node(
    aws: Path, tmp_path: Path
) -> None:
    config = copy.deepcopy(filled())
    region = config["provider"]["region"]
    for service, operation, arguments in documented_calls(tmp_path, region):
        getattr(boto3.client(service, region), operation)(**arguments)

    config = AWSNodeProvider.bootstrap_config(config)
    kinds = config["available_node_types"].values()
    (group,) = {group for kind in kinds for group in kind["node_config"]["SecurityGroupIds"]}
    ec2 = boto3.client("ec2", region)
    (described,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    rules = [json.dumps(rule) for rule in described["IpPermissions"]]
    of_ssh, of_nodes = sorted(rules, key=lambda rule: group in rule)
    assert re.findall(r'"(?:Cidr|Group|Prefix)\w*": "(.*?)"', of_ssh) == [f"{MY_ADDRESS}/32"]
    assert re.findall(r'"(?:From|To)Port": (\d+)', of_ssh) == ["22", "22"]
    assert re.findall(r'"(?:Cidr|Group|Prefix)\w*": "(.*?)"', of_nodes) == [group]

    provider = AWSNodeProvider(config["provider"], config["cluster_name"])
    for name, kind in config["available_node_types"].items():
        labels = {tags.TAG_RAY_NODE_KIND: "x", tags.TAG_RAY_USER_NODE_TYPE: name}
        (instance,) = provider.create_node(kind["node_config"], labels, 1).values()
        instance.load()
        assert instance.instance_lifecycle == ("spot" if name == "gpu-spot" else None)
        profile = "attention-study-head" if name == "head" else "attention-study-node"
        assert instance.iam_instance_profile["Arn"].endswith(f"/{profile}")
        assert instance.metadata_options["HttpTokens"] == "required"
        if name == "head":
            shutdown = instance.describe_attribute(Attribute="instanceInitiatedShutdownBehavior")
            assert shutdown["InstanceInitiatedShutdownBehavior"] == {"Value": "terminate"}
        assert instance.key_name == "attention-study"
        assert [each["GroupId"] for each in instance.security_groups] == [group]
        disks = list(instance.volumes.all())
        assert disks
        assert all(disk.encrypted and disk.volume_type == "gp3" for disk in disks)
    key = aws / ".ssh" / "attention-study.pem"
    assert key.stat().st_mode & 0o077 == 0
    assert config["auth"]["ssh_private_key"] == str(key)


@pytest.mark.faults
def test_no_gpu_node_must_be_there_and_the_head_has_none(aws: Path) -> None:
    kinds = filled()["available_node_types"]
    assert not any(kind["min_workers"] for kind in kinds.values())
    gpus = {name: kind["resources"].get("GPU", 0) for name, kind in kinds.items()}
    assert gpus == {"head": 0, "gpu-on-demand": 1, "gpu-spot": 1}


def test_the_head_may_do_what_it_must_and_nodes_the_bucket_only(tmp_path: Path) -> None:
    policies = {
        (call["RoleName"], call["PolicyName"]): json.loads(call["PolicyDocument"])["Statement"]
        for _, operation, call in documented_calls(tmp_path, "us-west-2")
        if operation == "put_role_policy"
    }
    bucket = policies["attention-study-node", "bucket"]
    assert policies.keys() == {
        ("attention-study-node", "bucket"),
        ("attention-study-head", "bucket"),
        ("attention-study-head", "nodes"),
    }
    name = read()["metadata"]["bucket"].partition("s3://")[2].split()[0]
    for statement in bucket:
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else actions:
            assert action.startswith("s3:")
            assert "*" not in action
        assert statement["Resource"].removesuffix("/*") == f"arn:aws:s3:::{name}"
    head = policies["attention-study-head", "nodes"]
    tag = f"aws:ResourceTag/{tags.TAG_RAY_CLUSTER_NAME}"
    own = {"StringEquals": {tag: read()["cluster_name"]}}
    new = {"StringEquals": {"ec2:CreateAction": "RunInstances"}}
    # Whoever may tag any instance may end it, too.
    conditions = {"ec2:TerminateInstances": [own], "ec2:CreateTags": [new, own]}
    for action, expected in conditions.items():
        assert [s.get("Condition") for s in head if action in s["Action"]] == expected
    passed = [s["Resource"] for s in head if "iam:PassRole" in s["Action"]]
    assert passed == ["arn:aws:iam::*:role/attention-study-node"]


# The five lines


@pytest.mark.faults
def test_five_lines_are_all_that_a_reader_changes(aws: Path) -> None:
    assert read()["metadata"].keys() == OTHER.keys()
    changed = FILE.read_text()
    for name, (old, new) in OTHER.items():
        line = rf"^(    {name}: .*?){old}"
        changed, found = re.subn(line, rf"\g<1>{new}", changed, flags=re.MULTILINE)
        assert found == 1
    config = AWSNodeProvider.bootstrap_config(prepared(read(changed)))
    kinds = config["available_node_types"]
    assert config["provider"]["region"] == "eu-central-1"
    assert {k["node_config"]["InstanceType"] for n, k in kinds.items() if n != "head"} == {
        "g5.2xlarge"
    }
    assert config["max_workers"] == kinds["gpu-spot"]["max_workers"] == 9
    assert {kind["node_config"]["KeyName"] for kind in kinds.values()} == {"another-key"}
    assert any("s3://another-bucket " in command for command in config["setup_commands"])
    for old in ("us-west-2", "g6.xlarge", "my-attention-study"):
        assert old not in json.dumps(config)


def test_no_value_looks_like_a_secret() -> None:
    text = "".join(file.read_text() for file in (FILE, DOCUMENT, ACCOUNT, KUBERAY))
    assert not re.search(
        r"\b(AKIA|ASIA)[0-9A-Z]{16}\b|BEGIN [A-Z ]*PRIVATE KEY|://[^/\s]*:[^/\s]*@", text
    )
    assert not re.search(r"\b[0-9a-f]{32,}\b", text)
    assert not re.search(r"(?i)(password|secret|token|access_key)\w*\s*[=:]\s*['\"]?\w{12,}", text)


# What reaches the nodes


@pytest.mark.faults
def test_the_project_and_the_token_are_copied_and_nothing_else(tmp_path: Path) -> None:
    mounts = read()["file_mounts"]
    assert set(mounts.values()) == {
        "pyproject.toml", "README.md", "hatch_build.py", "study", "analysis", "search_spaces",
        "~/.ray/auth_token",
    }  # fmt: skip
    assert all(there.startswith("~/") for there in mounts)
    for there, here in mounts.items():
        if not here.startswith("~"):
            there = tmp_path / there.removeprefix("~/attention-study/")
            ignored = shutil.ignore_patterns(*read()["rsync_exclude"])
            source = PROJECT / here
            if source.is_dir():
                shutil.copytree(source, there, ignore=ignored)
            else:
                shutil.copy(source, there)
    # It is all that a study, its report and MLflow's runs take.
    code = "import study.run, study.launch.run_job, study.track, analysis.report"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=120)


def test_every_package_of_a_node_is_pinned_to_the_version_tested() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    constraints = map(Requirement, project["tool"]["uv"]["constraint-dependencies"])
    pins = {canonicalize_name(pin.name): str(pin.specifier) for pin in constraints}
    extras = project["project"]["optional-dependencies"]
    waiting = [*project["project"]["dependencies"], *extras["cluster"], *extras["captions"]]
    seen: set[tuple[str, str]] = set()
    while waiting:
        needed = Requirement(waiting.pop())
        name = canonicalize_name(needed.name)
        assert pins.get(name) == f"=={importlib.metadata.version(name)}"
        for extra in {"", *needed.extras} - {extra for other, extra in seen if other == name}:
            seen.add((name, extra))
            waiting += [
                line
                for line in importlib.metadata.requires(name) or []
                if not (marker := Requirement(line).marker) or marker.evaluate({"extra": extra})
            ]
    assert {"ray", "torch", "boto3", "s3fs", "mlflow", "sacrebleu"} <= {name for name, _ in seen}


# The shell commands


STAND_IN = """#!/usr/bin/env bash
call=$(mktemp "$CALLS/XXXXXX")
{ printf '%s\\n' "$(basename "$0") $*"; pwd; env; } > "$call" && mv "$call" "$call.txt"
[ "$(basename "$0")" != mlflow ] || sleep 9  # it serves
"""


@pytest.mark.parametrize("part", ["head", "worker"])
def test_ray_starts_with_the_token_the_project_and_its_environment(
    part: str, tmp_path: Path
) -> None:
    calls = run_commands(part, tmp_path)
    settings = {**cluster._WORKER_SETTINGS, **cluster.SETTINGS}
    shared = {name: value for name, value in settings.items() if not name.startswith("TUNE_")}
    shared.pop("RAY_AIR_NEW_OUTPUT")  # Tune's, which drivers import
    starts = [call for call in calls if call[0].startswith("ray start")]
    assert len(starts) == 2
    for line, folder, environment in starts:
        assert folder == str(tmp_path / "attention-study")
        assert environment["RAY_AUTH_MODE"] == "token"
        assert shared.items() <= environment.items()
        # Nodes must hear one another.
        assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in environment
        assert environment["STUDY_BUCKET"] == "s3://my-attention-study"
        first = environment["PATH"].split(":")[0]
        assert first == str(tmp_path / "attention-study" / ".venv" / "bin")
        if part == "head":
            assert "--dashboard-host=127.0.0.1" in line
            assert environment["MLFLOW_TRACKING_URI"] == "http://127.0.0.1:5000"
        else:
            assert "--address=10.0.0.9:6379" in line
    served = [line.split()[2:] for line, *_ in calls if line.startswith("mlflow server ")]
    assert len(served) == (part == "head")  # once, though it is started twice
    of_tests = tracking_server(tmp_path, "")._words  # a real one, which tests/faults starts
    for words in served:
        assert {word for word in words if word[:2] == "--"} <= {*of_tests}
        assert words[:2] == ["--host", "127.0.0.1"]
        assert words[-2:] == ["--artifacts-destination", "s3://my-attention-study/mlflow"]
    assert (tmp_path / ".ray" / "auth_token").stat().st_mode & 0o077 == 0
    assert (tmp_path / ".bashrc").read_text().count("study.env") == 1


def run_commands(part: str, home: Path) -> list[tuple[str, str, dict[str, str]]]:
    """Runs setup and start of a node twice in an empty home, as Ray does, with stand-ins for what
    would reach out; their calls: (command line, directory, environment)."""
    config = prepare_config(read())
    bin_folder = home / "attention-study" / ".venv" / "bin"
    for folder in (bin_folder, home / ".ray", home / "calls"):
        folder.mkdir(parents=True)
    (home / ".ray" / "auth_token").write_text("x")
    for name in ("ray", "uv", "mlflow", "curl"):
        (bin_folder / name).write_text(STAND_IN)
        (bin_folder / name).chmod(0o755)
    environment = {
        "HOME": str(home), "PATH": f"{bin_folder}:/usr/local/bin:/usr/bin:/bin",
        "CALLS": str(home / "calls"), "RAY_HEAD_IP": "10.0.0.9",
    }  # fmt: skip
    for command in 2 * [*config[f"{part}_setup_commands"], *config[f"{part}_start_ray_commands"]]:
        done = subprocess.run(
            ["bash", "-c", unwrapped(command)],
            env=environment, cwd=home, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)
    calls = []
    for file in (home / "calls").glob("*.txt"):
        line, folder, *variables = file.read_text().splitlines()
        calls.append((line, folder, dict(each.split("=", 1) for each in variables if "=" in each)))
    return calls


# The one-time commands of the document

AWS_STAND_IN = """#!{python}
import json, pathlib, sys
words = [pathlib.Path(w[7:]).read_text() if w.startswith("file://") else w for w in sys.argv[1:]]
with open({calls!r}, "a") as file:
    file.write(json.dumps(words) + "\\n")
"""


def documented_calls(folder: Path, region: str) -> list[tuple[str, str, dict[str, Any]]]:
    """The calls of AWS that examples/aws/account.sh makes, in order, after the document's exports:
    (service, operation, arguments)."""
    work = folder / "aws"
    work.mkdir(exist_ok=True)
    calls = work / "calls"
    calls.write_text("")
    (work / "aws").write_text(AWS_STAND_IN.format(python=sys.executable, calls=str(calls)))
    (work / "curl").write_text(f"#!/bin/sh\necho {MY_ADDRESS}\n")
    for name in ("aws", "curl"):
        (work / name).chmod(0o755)
    (exports,) = (block for block in blocks() if "export BUCKET" in block)
    script = exports + ACCOUNT.read_text()
    subprocess.run(
        ["bash", "-euc", script],
        cwd=work, env={"PATH": f"{work}:/usr/bin:/bin"}, check=True, timeout=60,
    )  # fmt: skip
    return [api_call(json.loads(line), region) for line in calls.read_text().splitlines()]


def api_call(words: list[str], region: str) -> tuple[str, str, dict[str, Any]]:
    """What a command line of `aws` asks of the service; its options are checked against it."""
    service, operation, *options = words
    if (service, operation) == ("s3", "mb"):
        bucket = {"Bucket": options[0].removeprefix("s3://")}
        place = {"LocationConstraint": region}
        return "s3", "create_bucket", {**bucket, "CreateBucketConfiguration": place}
    model = boto3.client(service, region).meta.service_model
    (name,) = [n for n in model.operation_names if xform_name(n, "-") == operation]
    members = model.operation_model(name).input_shape.members
    by_flag = {f"--{xform_name(member, '-')}": member for member in members}
    arguments = {}
    for flag, value in zip(options[::2], options[1::2], strict=True):
        member = by_flag[flag]
        structured = members[member].type_name in ("list", "structure")
        arguments[member] = json.loads(value) if structured else value
    return service, xform_name(name), arguments
