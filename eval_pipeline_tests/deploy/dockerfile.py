"""Enough of a Dockerfile's grammar to execute ours without an engine: in a folder that stands for the image's root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

OF_THE_SYSTEM = ("apt-get", "groupadd")
"""Steps that change the machine itself begin so; they are not executed."""


@dataclass
class Stage:
    """One stage: its instructions in order, each with its arguments as they are written."""

    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def last(self, instruction: str) -> str:
        return [arguments for name, arguments in self.steps if name == instruction][-1]

    def command(self, instruction: str) -> list[str]:
        """The command of ``CMD`` or ``HEALTHCHECK`` in its JSON form."""
        written: list[str] = json.loads(self.last(instruction)[self.last(instruction).index("[") :])
        return written


def parse(path: Path) -> list[Stage]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    stages: list[Stage] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        instruction, _, arguments = line.strip().partition(" ")
        if instruction == "FROM":
            base, _, name = arguments.partition(" AS ")
            stages.append(Stage(base, name or str(len(stages))))
        else:
            stages[-1].steps.append((instruction, arguments.strip()))
    return stages


class Build:
    """Executes stages; every absolute path that the file itself names is taken below ``root``/<stage>."""

    def __init__(self, stages: list[Stage], context: Path, root: Path) -> None:
        self._context, self._root = context, root
        copied = [word for stage in stages for name, text in stage.steps if name == "COPY" for word in text.split()]
        places = [text for stage in stages for name, text in stage.steps if name == "WORKDIR"] + copied
        tops = {place for place in places if place.startswith("/")}
        self._places = re.compile(
            r"(?<![\w./-])(" + "|".join(map(re.escape, sorted(tops, reverse=True))) + r")(?![\w-])"
        )
        self.environment: dict[str, str] = {}
        self.workdir = root
        self.executed: list[str] = []

    def here(self, text: str, stage: str) -> str:
        return self._places.sub(lambda found: str(self._root / stage) + found[1], text)

    def run(self, stage: Stage) -> None:
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self._root)}
        self.environment |= {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "HTTP", "SSL"))
        }
        for instruction, arguments in stage.steps:
            match instruction:
                case "ENV":
                    self._env(self.here(arguments, stage.name))
                case "WORKDIR":
                    self.workdir = Path(self.here(arguments, stage.name))
                    self.workdir.mkdir(parents=True, exist_ok=True)
                case "COPY":
                    self._copy(arguments, stage)
                case "RUN":
                    self._shell(re.sub(r"--mount=\S+\s+", "", arguments), stage)
                case _:
                    continue

    def _env(self, arguments: str) -> None:
        for word in arguments.split():
            name, _, value = word.partition("=")
            # pip's cache is what makes the test bearable, and all that is different
            if name != "PIP_NO_CACHE_DIR":
                self.environment[name] = value.replace("$PATH", self.environment["PATH"])

    def _copy(self, arguments: str, stage: Stage) -> None:
        *sources, target = arguments.split()
        origin = ""
        if sources[0].startswith("--from="):
            origin = sources.pop(0).removeprefix("--from=")
        destination = self.workdir / self.here(target, stage.name)
        for source in sources:
            found = Path(self.here(source, origin)) if origin else self._context / source
            if found.is_dir():
                if origin:
                    # what is made for one path cannot be moved: scripts name their interpreter
                    destination.parent.mkdir(parents=True, exist_ok=True)
                    destination.symlink_to(found)
                else:
                    shutil.copytree(found, destination, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(found, destination)

    def _shell(self, command: str, stage: Stage) -> None:
        if command.startswith(OF_THE_SYSTEM):
            return
        if os.geteuid() != 0:
            command = re.sub(r" -[og] \d+", "", command)
        command = self.here(command, stage.name)
        self.executed.append(command)
        ended = subprocess.run(
            ["sh", "-eu", "-c", command],
            cwd=self.workdir,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
