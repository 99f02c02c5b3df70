"""The files under deploy/ match the product: the settings, commands, paths and modules that they
use exist."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tomllib
from configparser import ConfigParser
from fnmatch import fnmatch
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from gadget_site.environment import read_settings
from gadget_site.settings_table import SETTINGS
from gadget_site.version import VERSION
from tests.deployment import dockerfile
from tests.deployment.package import ROOT, Installed, build_wheel

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMMON = DEPLOY / "systemd" / "gadget-.service.d" / "common.conf"
ENTRY_POINT = (DEPLOY / "entrypoint.sh").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {
    name: service for name, service in SERVICES.items() if service["image"].startswith("gadget:")
}
NAMES = {setting.name for setting in SETTINGS}
OF_OTHERS = {"CELERY_SKIP_CHECKS"}
"""A variable that Celery reads; like variables that start with PYTHON, it is not a Gadget
setting."""


def is_known_command(word: str) -> bool:
    """Return True if the image's entry point can start something with this name."""
    return word in get_commands() or bool(
        re.search(rf"^    {re.escape(word)}\)", ENTRY_POINT, flags=re.MULTILINE)
    )


def read_unit(path: Path) -> ConfigParser:
    unit = ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(path.read_text(encoding="utf-8"))
    return unit


class TestTheImage:
    def test_runs_unprivileged_with_a_volume_a_health_check_an_entry_point_and_a_command(
        self,
    ) -> None:
        build, final = dockerfile.stages()
        assert not [each for each in build if each.name in ("USER", "ENTRYPOINT")]
        by_name = {each.name: each for each in final}
        user, _, group = by_name["USER"].arguments.partition(":")
        assert (int(user), int(group)) > (0, 0)
        assert by_name["VOLUME"].arguments == dockerfile.environment()["GADGET_DATA_DIR"]
        assert by_name["HEALTHCHECK"].arguments.endswith('CMD ["healthcheck", "web"]')
        assert by_name["ENTRYPOINT"].arguments == '["entrypoint"]'
        (command,) = yaml.safe_load(by_name["CMD"].arguments)
        assert is_known_command(command)

    def test_installs_only_packages_with_hashes_and_gadgets_own_package(self) -> None:
        scripts = [
            each.arguments for stage in dockerfile.stages() for each in stage if each.name == "RUN"
        ]
        installs = re.findall(r"(?:install|wheel) (--.*?)(?= &&|$)", " && ".join(scripts))
        of_pip = [each for each in installs if "--directory" not in each]
        assert len(of_pip) == 4
        assert all(
            "--no-deps" in each and ("--require-hashes" in each or "--no-index" in each)
            for each in of_pip
        )

    def test_has_a_health_check_that_reads_only_variables_that_are_settings(self) -> None:
        names = re.findall(
            r"environ\W+(?:get\W+)?(\w+)", (DEPLOY / "healthcheck.py").read_text(encoding="utf-8")
        )
        assert len(names) == 3
        assert set(names) <= NAMES

    def test_has_a_supported_version_of_python(self) -> None:
        (version,) = re.findall(
            r"^ARG PYTHON=(\d+)\.(\d+)-", dockerfile.FILE.read_text(), flags=re.MULTILINE
        )
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        (oldest,) = re.findall(r"^>=(\d+)\.(\d+)$", project["requires-python"])
        assert tuple(map(int, version)) >= tuple(map(int, oldest))

    def test_sets_only_variables_that_are_settings(self) -> None:
        names = {
            name
            for name in dockerfile.environment()
            if name != "PATH" and not name.startswith("PYTHON")
        }
        assert names <= NAMES

    def test_copies_all_files_needed_to_build_the_package(
        self, wheel: Path, tmp_path: Path
    ) -> None:
        build = tmp_path / "src"
        build.mkdir()
        for source, target in self._copied():
            shutil.copytree(source, build / target) if source.is_dir() else shutil.copy(
                source, build / target
            )
        again = build_wheel(tmp_path / "dist", build)
        assert again.read_bytes() == wheel.read_bytes()

    def test_has_all_copied_files_in_its_build_context(self) -> None:
        kept = [
            line[1:]
            for line in (ROOT / ".dockerignore").read_text().splitlines()
            if line.startswith("!")
        ]
        sources = [
            source for stage in dockerfile.stages() for each in stage for source in sources_of(each)
        ]
        assert "deploy/entrypoint.sh" in sources
        for source in sources:
            assert any(fnmatch(source, pattern) for pattern in kept), source

    def _copied(self) -> list[tuple[Path, str]]:
        """List the source and the target of each file that the first stage copies into its working
        directory."""
        found = []
        for each in dockerfile.stages()[0]:
            target = each.words[-1]
            found += [
                (ROOT / source, Path(source).name if target == "./" else target)
                for source in sources_of(each)
                if not target.startswith("/")
            ]
        return found


def sources_of(each: dockerfile.Instruction) -> list[str]:
    """List the files that the instruction copies out of the checkout."""
    if each.name != "COPY" or "--from" in each.arguments:
        return []
    return [word for word in each.words[:-1] if not word.startswith("--")]


class TestCompose:
    def test_has_every_part_and_postgresql_valkey_and_a_proxy(self) -> None:
        assert set(OURS) == {"web", "worker", "sweeper", "migrate"}
        assert set(SERVICES) - set(OURS) == {"postgresql", "valkey", "proxy"}

    @pytest.mark.parametrize("name", OURS)
    def test_runs_each_part_with_a_known_command_and_without_privileges(self, name: str) -> None:
        service = OURS[name]
        (command,) = service["command"]
        assert is_known_command(command)
        assert service["image"] == f"gadget:{VERSION}"
        assert service["read_only"] is True
        assert service["tmpfs"] == [str(Path(dockerfile.environment()["HEARTBEAT_FILE"]).parent)]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["volumes"] == [f"data:{dockerfile.environment()['GADGET_DATA_DIR']}"]
        assert not {"privileged", "user", "ports", "cap_add"} & set(service)
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()

    def test_overrides_the_images_health_check_for_every_part_but_web(self) -> None:
        for name in ("worker", "sweeper"):
            assert OURS[name]["healthcheck"]["test"] == ["CMD", "healthcheck", "heartbeat"]
        assert "healthcheck" not in OURS["web"]
        assert OURS["migrate"]["healthcheck"] == {"disable": True}

    def test_sets_only_variables_that_are_settings(self) -> None:
        assert {name for service in OURS.values() for name in service["environment"]} <= NAMES

    def test_has_valid_settings(self, tmp_path: Path) -> None:
        given = self._example() | {"POSTGRES_PASSWORD": "b4d", "SECRET_KEY": "s" * 50}
        given |= {
            name: os.environ[name] for name in ("GADGET_ENCRYPTION_KEYS", "GADGET_AUDIT_KEYS")
        }
        texts = OURS["web"]["environment"].items()
        environment = {
            name: re.sub(r"\$\{(\w+):[?-]\}", lambda m: given[m[1]], text) for name, text in texts
        }
        site = read_settings(
            dockerfile.environment() | environment | {"GADGET_DATA_DIR": str(tmp_path)}, tmp_path
        )
        assert not site.debug
        assert site.served_over_https
        assert site.database.host == "postgresql"
        assert site.trusted_proxies == (
            ip_network(SERVICES["proxy"]["networks"]["front"]["ipv4_address"]),
        )

    def test_lists_every_required_variable_in_the_example(self) -> None:
        text = "\n".join(
            path.read_text() for path in (DEPLOY / "compose.yaml", DEPLOY / "Caddyfile")
        )
        assert set(re.findall(r"\{?\$\{?(\w+)", text)) == set(self._example())

    def test_declares_every_network_volume_and_dependency_that_a_service_names(self) -> None:
        for service in SERVICES.values():
            assert set(service["networks"]) <= set(COMPOSE["networks"])
            assert set(service.get("depends_on", ())) <= set(SERVICES)
            named = {volume.partition(":")[0] for volume in service.get("volumes", ())}
            for volume in named:
                assert (
                    (DEPLOY / volume).is_file()
                    if volume.startswith("./")
                    else volume in COMPOSE["volumes"]
                )

    def test_routes_the_proxy_to_the_web_part(self) -> None:
        (upstream,) = re.findall(
            r"^\treverse_proxy (\S+)$", (DEPLOY / "Caddyfile").read_text(), flags=re.MULTILINE
        )
        assert upstream == f"web:{dockerfile.environment()['PORT']}"
        assert "front" in SERVICES["web"]["networks"]
        subnet = COMPOSE["networks"]["front"]["ipam"]["config"][0]["subnet"]
        assert ip_address(SERVICES["proxy"]["networks"]["front"]["ipv4_address"]) in ip_network(
            subnet
        )

    def _example(self) -> dict[str, str]:
        lines = (DEPLOY / "example.env").read_text(encoding="utf-8").splitlines()
        return {
            name: value
            for name, _, value in (
                line.partition("=") for line in lines if re.match(r"[A-Z]", line)
            )
        }


class TestSystemdUnits:
    @pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
    def test_start_existing_commands_or_modules(self, path: Path) -> None:
        command = read_unit(path)["Service"]["ExecStart"].split()
        if command[0] == "/opt/gadget/bin/gadget":
            assert command[1] in get_commands()
        else:
            assert command[:2] == ["/opt/gadget/bin/python", "-m"]
            assert importlib.util.find_spec(command[2])

    def test_are_all_started_by_the_target(self) -> None:
        wanted = read_unit(DEPLOY / "systemd" / "gadget.target")["Unit"]["Wants"].split()
        assert {re.sub(r"@\d+", "@", name) for name in wanted} == {path.name for path in UNITS} - {
            "gadget-migrate.service"
        }

    def test_start_after_the_migrations(self) -> None:
        for path in UNITS:
            if path.name != "gadget-migrate.service":
                unit = read_unit(path)["Unit"]
                assert unit["Requires"] == unit["After"] == "gadget-migrate.service"

    def test_set_only_variables_that_are_settings(self) -> None:
        units = [read_unit(path)["Service"].get("Environment", "") for path in (*UNITS, COMMON)]
        names = {word.partition("=")[0] for line in units for word in line.split()}
        assert {name for name in names if not name.startswith("PYTHON")} <= NAMES | OF_OTHERS

    def test_are_described_in_a_guide_that_names_the_current_package_and_image(
        self, wheel: Path
    ) -> None:
        guide = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
        assert set(re.findall(r"gadget-[\d.]+\S*\.whl", guide)) == {wheel.name}
        assert set(re.findall(r"gadget:[\d.]+", guide)) == {f"gadget:{VERSION}"}

    def test_are_accepted_by_systemd(self, installed: Installed, tmp_path: Path) -> None:
        if shutil.which("systemd-analyze") is None:
            pytest.skip("systemd-analyze is not installed")
        folder = shutil.copytree(DEPLOY / "systemd", tmp_path / "units")
        for path in folder.glob("*.service"):
            path.write_text(path.read_text().replace("/opt/gadget", str(installed.folder)))
        names = [str(folder / path.name) for path in (*UNITS, Path("gadget.target"))]
        done = subprocess.run(
            ["systemd-analyze", "verify", *names],
            env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
