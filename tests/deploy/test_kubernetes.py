"""The manifests: valid against the schemas of Kubernetes, and what they promise about users, limits and networks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from goat_mcp.settings.settings import settings_of
from tests.deploy.files import DEPLOY, documents

FILES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
OBJECTS = [document for file in FILES for document in documents(file)]
WORKLOADS = [one for one in OBJECTS if one["kind"] in ("Deployment", "StatefulSet")]


def validated(*files: Path) -> tuple[int, str]:
    program = Path(sys.executable).with_name("kubernetes-validate")
    done = subprocess.run([program, "--strict", *files], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def one(kind: str, name: str = "goat-mcp") -> dict[str, Any]:
    (found,) = [document for document in OBJECTS if (document["kind"], document["metadata"]["name"]) == (kind, name)]
    return found


def containers(workload: dict[str, Any]) -> list[dict[str, Any]]:
    return workload["spec"]["template"]["spec"]["containers"]


def test_kubernetes_takes_them_and_not_a_broken_one(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(FILES[0].read_text().replace("readOnlyRootFilesystem", "readOnlyRootFileSystem"))

    assert validated(*FILES)[0] == 0, validated(*FILES)[1]
    status, said = validated(broken)
    assert status != 0
    assert "readOnlyRootFileSystem" in said


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one["metadata"]["name"])
def test_no_pod_is_root_writes_to_its_root_or_uses_what_it_likes(workload: dict[str, Any]) -> None:
    pod = workload["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in containers(workload):
        confined = container["securityContext"]
        assert confined["readOnlyRootFilesystem"] is True
        assert confined["allowPrivilegeEscalation"] is False
        assert confined["capabilities"] == {"drop": ["ALL"]}
        assert {"cpu", "memory"} <= set(container["resources"]["limits"])
        assert "readinessProbe" in container
        assert "livenessProbe" in container


def test_the_servers_settings_load_and_its_pod_outlives_its_drain() -> None:
    data = one("ConfigMap")["data"]
    settings = settings_of(yaml.safe_load(data["goat-mcp.yaml"]), "the map")
    pod = one("Deployment")["spec"]["template"]["spec"]

    assert "mcp.example.com" in settings.http.hosts
    assert settings.catalog.toolsets == ("upstream",)
    assert pod["terminationGracePeriodSeconds"] > settings.replica.drain_s
    assert one("PodDisruptionBudget")["spec"]["minAvailable"] == one("Deployment")["spec"]["replicas"] - 1


def test_what_one_names_of_another_is_there() -> None:
    (server,) = containers(one("Deployment"))
    pod = one("Deployment")["spec"]["template"]["spec"]
    ports = {port["name"] for port in server["ports"]}

    assert {mount["name"] for mount in server["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert one("Service")["spec"]["ports"][0]["targetPort"] in ports
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert server[name]["httpGet"]["port"] in ports
    labels = one("Deployment")["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service", "Deployment", "PodDisruptionBudget", "NetworkPolicy"):
        spec = one(kind)["spec"]
        selector = spec.get("podSelector") or spec["selector"]
        assert selector.get("matchLabels", selector) == labels


def test_each_workload_has_a_policy_in_both_directions() -> None:
    chosen = [
        (policy["spec"]["podSelector"]["matchLabels"], policy["spec"]["policyTypes"])
        for policy in OBJECTS
        if policy["kind"] == "NetworkPolicy"
    ]

    for workload in WORKLOADS:
        assert (workload["spec"]["template"]["metadata"]["labels"], ["Ingress", "Egress"]) in chosen
