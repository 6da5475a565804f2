"""The Kubernetes manifests: by schema, and whether they fit together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from diagnoser.service.config import load

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


@pytest.mark.parametrize("name", KUSTOMIZATION["resources"])
def test_manifests_follow_their_schemas(name: str) -> None:
    for file, one in manifests():
        if file != name:
            continue
        if one["kind"] in CUSTOM:
            schema = json.loads((SCHEMAS / CUSTOM[one["kind"]]).read_text())
            jsonschema.Draft202012Validator(schema).validate(one)
        else:
            for version in KUBERNETES:
                kubernetes_validate.validate(one, version, strict=True)


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
