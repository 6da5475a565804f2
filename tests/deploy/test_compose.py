"""docker-compose.yml and the Dockerfile, as Docker Compose and hadolint read them; and what is derived."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from diagnoser.service.config import load

from .programs import compose, hadolint

ROOT = Path(__file__).parents[2]
DEPLOY, SCHEMAS = ROOT / "deploy", ROOT / "tests" / "data" / "schemas"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def test_what_is_derived_is_what_the_script_makes() -> None:
    made = runpy.run_path(str(DEPLOY / "build.py"))["made"]
    for name, text in made().items():
        assert (DEPLOY / name).read_text() == text, f"{name}: run python deploy/build.py"


# ---------------------------------------------------------------- compose


def test_compose_file_follows_the_specification() -> None:
    jsonschema.Draft7Validator(json.loads((SCHEMAS / "compose-spec.json").read_text())).validate(COMPOSE)


@pytest.fixture(scope="module")
def services() -> Mapping[str, Any]:
    """As `docker compose config` understands them: anchors merged, paths absolute, short forms spelled out."""
    ran = compose("-f", ROOT / "docker-compose.yml", "config", "--format", "json")
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr
    found: Mapping[str, Any] = json.loads(ran.stdout)["services"]
    return found


def test_compose_finds_every_service(services: Mapping[str, Any]) -> None:
    assert set(services) == set(COMPOSE["services"])


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_services_are_pinned_checked_and_without_root(name: str, services: Mapping[str, Any]) -> None:
    service = services[name]
    assert re.search(r":v?\d+\.\d+\.\d+$", service["image"]), "a version, not a moving tag"
    assert re.fullmatch(r"[1-9]\d*:\d+", service["user"])
    assert service["healthcheck"]["test"][0] == "CMD" and {"interval", "timeout", "retries"} <= set(
        service["healthcheck"]
    )
    assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("read_only", False) == (name != "grafana") and service["restart"] == "unless-stopped"
    assert all(port["host_ip"] == "127.0.0.1" for port in service.get("ports", []))
    for volume in service.get("volumes", []):
        assert volume["type"] == "volume" or (volume["read_only"] and Path(volume["source"]).exists()), volume


@pytest.mark.parametrize(
    ("old", "new"), [("diagnoser-data:/data", "elsewhere:/data"), ("retries: 5", "retries: many"), ("image:", "imago:")]
)
def test_compose_refuses_a_wrong_file(old: str, new: str, tmp_path: Path) -> None:
    """That the check above can fail."""
    text = (ROOT / "docker-compose.yml").read_text()
    assert old in text
    (tmp_path / "docker-compose.yml").write_text(text.replace(old, new))
    assert compose("-f", tmp_path / "docker-compose.yml", "config", "--quiet").returncode != 0


def test_what_compose_mounts_and_waits_for_exists() -> None:
    for name, service in COMPOSE["services"].items():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], (name, source)
        for other in service.get("depends_on", {}):
            assert other in COMPOSE["services"]


def test_configuration_files_name_services_of_compose() -> None:
    """Every host:port in them is a service and a port that it listens on."""
    ports = {"engine-bound": 8000, "engine-healthy": 8000, "diagnoser": 9180, "prometheus": 9090, "alertmanager": 9093}
    texts = [path.read_text() for path in (DEPLOY / "compose").rglob("*.y*ml") if path.parent.name != "rules"]
    found = {pair for text in texts for pair in re.findall(r"(?:http://|[\[ ])([a-z-]+):(\d{4})\b", text)}
    assert {name for name, _ in found} - {"localhost"} == set(ports)
    assert all(int(port) == ports[name] for name, port in found if name != "localhost")


def test_the_service_configuration_is_valid() -> None:
    assert load(DEPLOY / "compose" / "diagnoser.yaml").targets


def test_grafana_is_provisioned_with_both_data_sources_and_all_dashboards() -> None:
    grafana = DEPLOY / "compose" / "grafana"
    sources = yaml.safe_load((grafana / "datasources" / "datasources.yml").read_text())["datasources"]
    assert [one["type"] for one in sources] == ["prometheus", "yesoreyeram-infinity-datasource"]
    (provider,) = yaml.safe_load((grafana / "dashboards" / "dashboards.yml").read_text())["providers"]
    mounts = dict(volume.split(":")[:2] for volume in COMPOSE["services"]["grafana"]["volumes"])
    assert mounts["./dashboards"] == provider["options"]["path"]
    home = COMPOSE["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (ROOT / "dashboards" / Path(home).name).is_file()


# ---------------------------------------------------------------- Dockerfile


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile: name and rest, continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def test_hadolint_finds_nothing() -> None:
    ran = hadolint("--failure-threshold", "ignore", ROOT / "Dockerfile")
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout


def test_hadolint_refuses_a_bad_dockerfile(tmp_path: Path) -> None:
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM python:latest\nRUN sudo true\nRUN pip install pandas\n")
    ran = hadolint(bad)
    assert ran.returncode != 0 and {"DL3007", "DL3004", "DL3013"} <= set(re.findall(r"DL\d{4}", ran.stdout))


def test_dockerfile_ends_without_root_and_needs_no_frontend() -> None:
    """What hadolint does not ask: a numeric user (Kubernetes' runAsNonRoot wants one), and one registry less."""
    (user,) = (rest for name, rest in instructions() if name == "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert "syntax=" not in (ROOT / "Dockerfile").read_text()
    assert [rest for name, rest in instructions() if name == "ARG"] == ["PYTHON=3.13.7-slim-bookworm"]


def test_what_the_image_needs_is_sent_to_the_builder() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {s for name, rest in instructions() if name == "COPY" and "--from" not in rest for s in rest.split()[:-1]}
    assert copied == kept
