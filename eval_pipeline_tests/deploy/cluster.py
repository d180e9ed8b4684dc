"""A Kubernetes of one process: its API takes Jobs and starts the command of each on this machine.

It does what Dagster's run launcher and executor ask of a cluster and no more. What a container would get from Secrets
and ConfigMaps is put into its environment; volumes, limits and images are not made.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

RUN, STEP = "run_worker", "step_worker"


@dataclass
class Cluster:
    """What was asked for, and what there is. ``objects``: Secrets and ConfigMaps by name."""

    kubeconfig: Path
    objects: Mapping[str, Mapping[str, str]]
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    started: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    nodes_are_free: threading.Event = field(default_factory=threading.Event)
    """Until it is set, the Jobs of steps wait as in a cluster that is full."""

    def of(self, component: str) -> list[dict[str, Any]]:
        """The Jobs that were asked for by the run launcher (``RUN``) or by the executor (``STEP``)."""
        key = "app.kubernetes.io/component"
        return [job for job in self.jobs.values() if job["metadata"]["labels"][key] == component]

    def take(self, job: dict[str, Any]) -> None:
        name = job["metadata"]["name"]
        self.jobs[name] = job
        if job in self.of(STEP):
            threading.Thread(target=self._start_when_free, args=(name,), daemon=True).start()
        else:
            self._start(name)

    def _start_when_free(self, name: str) -> None:
        self.nodes_are_free.wait(120)
        self._start(name)

    def _start(self, name: str) -> None:
        pod = self.jobs[name]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        if not pod["automountServiceAccountToken"]:
            # a pod without the token cannot find the API
            self.kubeconfig.unlink()
        self.started[name] = subprocess.Popen(
            container["args"],
            env=self._environment(container),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _environment(self, container: Mapping[str, Any]) -> dict[str, str]:
        found = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/")}
        for source in container["envFrom"]:
            (reference,) = source.values()
            found |= self.objects[reference["name"]]
        for each in container["env"]:
            if "value" in each:
                found[each["name"]] = each["value"]
                continue
            key = each["valueFrom"]["secretKeyRef"]
            if key["key"] in self.objects[key["name"]]:
                found[each["name"]] = self.objects[key["name"]][key["key"]]
        return found

    def status(self, name: str) -> dict[str, int]:
        process = self.started.get(name)
        if process is None or process.poll() is None:
            return {"active": 1}
        return {"succeeded": 1} if process.returncode == 0 else {"failed": 1}

    def ended(self, component: str, timeout_s: float = 120) -> str:
        """Wait for the one Job of this kind to end; what its process wrote to stderr."""
        (job,) = self.of(component)
        _, said = self.started[job["metadata"]["name"]].communicate(timeout=timeout_s)
        return said

    def close(self) -> None:
        for process in self.started.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def cluster(folder: Path, objects: Mapping[str, Mapping[str, str]]) -> Iterator[Cluster]:
    """A cluster, with the file that leads Kubernetes' client to it."""
    made = Cluster(folder / "kubeconfig", objects)

    class Api(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            job = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.take(job)
            self._answer(201, job)

        def do_GET(self) -> None:
            name = self.path.removesuffix("/status").rpartition("/")[2]
            job = made.jobs.get(name)
            if job is None:
                self._answer(404, {"kind": "Status", "code": 404})
            else:
                self._answer(200, {**job, "status": made.status(name)})

        def _answer(self, code: int, content: object) -> None:
            data = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            del arguments

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    made.kubeconfig.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "here", "cluster": {"server": address}}],
                "users": [{"name": "nobody", "user": {}}],
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "nobody"}}],
                "current-context": "here",
            }
        ),
        encoding="utf-8",
    )
    try:
        yield made
    finally:
        made.close()
        server.shutdown()
        server.server_close()
