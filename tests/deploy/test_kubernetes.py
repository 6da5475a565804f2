"""The Kubernetes manifests: by schema, and whether they fit together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from diagnoser.service.config import load

from .programs import kustomize
from .stack import COMPOSE, ROOT

FOLDER, SCHEMAS = ROOT / "deploy" / "kubernetes", ROOT / "tests" / "data" / "schemas"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
CUSTOM = {
    "ServiceMonitor": "servicemonitors.monitoring.coreos.com.json",
    "PrometheusRule": "prometheusrules.monitoring.coreos.com.json",
}
KUBERNETES = ("1.37", "1.30")


def test_the_service_configuration_is_valid() -> None:
    assert load(FOLDER / "diagnoser.yaml").targets


def manifests() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Files that kustomize puts together."""
    for name in KUSTOMIZATION["resources"]:
        for one in yaml.safe_load_all((FOLDER / name).read_text()):
            yield name, one


def follows_its_schema(one: Mapping[str, Any]) -> None:
    """Of Kubernetes or of the Prometheus operator."""
    if one["kind"] in CUSTOM:
        schema = json.loads((SCHEMAS / CUSTOM[one["kind"]]).read_text())
        jsonschema.Draft202012Validator(schema).validate(one)
    else:
        for version in KUBERNETES:
            kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize("name", KUSTOMIZATION["resources"])
def test_manifests_follow_their_schemas(name: str) -> None:
    for file, one in manifests():
        if file == name:
            follows_its_schema(one)


def test_kustomization_has_every_file_of_its_folder() -> None:
    generated = {file for one in KUSTOMIZATION["configMapGenerator"] for file in one["files"]}
    named = {*KUSTOMIZATION["resources"], *generated, "kustomization.yaml"}
    assert named == {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()}
    shown = [one for one in KUSTOMIZATION["configMapGenerator"] if one["name"] != "diagnoser-config"]
    assert all(one["options"]["labels"] == {"grafana_dashboard": "1"} for one in shown) and len(shown) == 4


def test_manifests_fit_together() -> None:
    found = {one["kind"]: one for _, one in manifests()}
    pod = found["Deployment"]["spec"]["template"]
    labels = pod["metadata"]["labels"]
    for selector in (
        found["Deployment"]["spec"]["selector"]["matchLabels"],
        found["Service"]["spec"]["selector"],
        found["Service"]["metadata"]["labels"],
        found["ServiceMonitor"]["spec"]["selector"]["matchLabels"],
        found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    (container,) = pod["spec"]["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["spec"]["volumes"]
    }
    assert pod["spec"]["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
    assert container["image"] == COMPOSE["diagnoser"]["image"]


# ---------------------------------------------------------------- kustomize


@pytest.fixture(scope="module")
def built() -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """What `kubectl apply -k` would send, by kind and name."""
    ran = kustomize(FOLDER)
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr
    found = list(yaml.safe_load_all(ran.stdout))
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def test_kustomize_builds_every_object_and_each_follows_its_schema(
    built: Mapping[tuple[str, str], Mapping[str, Any]],
) -> None:
    config_maps = {name for kind, name in built if kind == "ConfigMap"}
    assert len(config_maps) == len(KUSTOMIZATION["configMapGenerator"])
    plain = {(one["kind"], one["metadata"]["name"]) for _, one in manifests()}
    assert set(built) == plain | {("ConfigMap", name) for name in config_maps}
    for one in built.values():
        follows_its_schema(one)


def test_what_is_built_is_in_one_namespace_under_one_name(
    built: Mapping[tuple[str, str], Mapping[str, Any]],
) -> None:
    for (kind, name), one in built.items():
        assert one["metadata"]["labels"]["app.kubernetes.io/name"] == "diagnoser", (kind, name)
        assert one["metadata"]["labels"]["app.kubernetes.io/part-of"] == "diagnoser", (kind, name)
        assert one["metadata"].get("namespace") == (None if kind == "Namespace" else "diagnoser"), (kind, name)
        assert name.startswith("diagnoser")


def test_the_built_pod_finds_its_configuration_and_image(
    built: Mapping[tuple[str, str], Mapping[str, Any]],
) -> None:
    pod = built["Deployment", "diagnoser"]["spec"]["template"]["spec"]
    (name,) = (volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume)
    assert name.startswith("diagnoser-config-"), "another content, another name: so that a change restarts the pod"
    assert built["ConfigMap", name]["data"] == {"diagnoser.yaml": (FOLDER / "diagnoser.yaml").read_text()}
    assert [one["image"] for one in pod["containers"]] == [COMPOSE["diagnoser"]["image"]]
    for volume in pod["volumes"]:
        claim = volume.get("persistentVolumeClaim")
        assert claim is None or ("PersistentVolumeClaim", claim["claimName"]) in built
    assert ("ServiceAccount", pod["serviceAccountName"]) in built


def test_built_dashboards_are_the_committed_ones_to_the_byte(
    built: Mapping[tuple[str, str], Mapping[str, Any]],
) -> None:
    shown = [one for one in built.values() if "grafana_dashboard" in one["metadata"]["labels"]]
    texts = {name: text for one in shown for name, text in one["data"].items()}
    assert texts == {path.name: path.read_text() for path in (ROOT / "deploy/kubernetes/dashboards").glob("*.json")}
    assert max(map(len, texts.values())) < 2**20, "a ConfigMap holds a mebibyte"


def test_built_rules_are_the_committed_ones(built: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    found = [group for (kind, _), one in built.items() if kind == "PrometheusRule" for group in one["spec"]["groups"]]
    files = sorted((ROOT / "rules" / "prometheus").glob("*.rules.yml"))
    wanted = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    by_name = lambda group: group["name"]  # noqa: E731
    assert sorted(found, key=by_name) == sorted(wanted, key=by_name)


def test_the_operator_can_mount_every_rule_object(built: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    """It writes each PrometheusRule into one file of a ConfigMap, and refuses all rules if one is above 512 KiB."""
    sizes = {
        name: len(yaml.safe_dump(one["spec"], width=2**30, allow_unicode=True).encode())
        for (kind, name), one in built.items()
        if kind == "PrometheusRule"
    }
    assert sizes and all(size < 0.9 * 2**19 for size in sizes.values()), sizes


def test_kustomize_refuses_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [nothing.yaml]\n")
    assert kustomize(tmp_path).returncode != 0
