"""docker-compose.yml and the Dockerfile, as far as they can be judged without running them; and what is derived."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import jsonschema
import pytest
import yaml

from diagnoser.service.config import load

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


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_services_are_pinned_checked_and_without_root(name: str) -> None:
    service = COMPOSE["services"][name]
    assert re.search(r":v?\d+\.\d+\.\d+$", service["image"]), "a version, not a moving tag"
    assert not service["user"].startswith(("0:", "root"))
    assert service["healthcheck"]["test"][0] == "CMD"
    assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


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


def test_dockerfile_keeps_the_rules_of_hadolint_that_matter_here() -> None:
    found = instructions()
    names = [name for name, _ in found]
    assert names.count("FROM") == 2 and all(" AS " in rest for name, rest in found if name == "FROM")  # DL3006
    assert [rest for name, rest in found if name == "ARG"] == ["PYTHON=3.13.7-slim-bookworm"]  # DL3007: no latest
    assert "ADD" not in names and "MAINTAINER" not in names  # DL3020, DL4000
    assert not any(
        re.search(r"\bsudo\b|\bapt\b|curl|wget", rest) for name, rest in found if name == "RUN"
    )  # DL3004, DL3027
    assert all(rest.startswith("/") for name, rest in found if name == "WORKDIR")  # DL3000
    (user,) = (rest for name, rest in found if name == "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user) and names.index("USER") > names.index("FROM")  # DL3002
    for name in ("ENTRYPOINT", "CMD"):
        assert [json.loads(rest) for kind, rest in found if kind == name]  # DL3025
    assert names.count("HEALTHCHECK") == 1  # DL3012
    copied = [rest.split()[:-1] for name, rest in found if name == "COPY" and "--from" not in rest]
    assert all((ROOT / source).exists() for sources in copied for source in sources)


def test_what_the_image_needs_is_sent_to_the_builder() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {s for name, rest in instructions() if name == "COPY" and "--from" not in rest for s in rest.split()[:-1]}
    assert copied == kept
