"""Dagster's instance with the shipped ``dagster.yaml``."""

from __future__ import annotations
import time
import dagster as dg
from eval_pipeline_tests.conftest import Database

def test_a(database):
    t=time.time()
    inst=dg.DagsterInstance.get()
    print("create", time.time()-t)
    t=time.time()
    inst2=dg.DagsterInstance.get()
    print("again", time.time()-t)
    for i in range(50):
        inst.report_runtime_asset_event if 0 else inst.report_runless_asset_event(dg.AssetMaterialization("a", metadata={"i": i}))
    print("50", time.time()-t)
    inst.dispose()
    import subprocess, os, pathlib
    print(sorted(p.name for p in pathlib.Path(os.environ["DAGSTER_HOME"]).rglob("*")))
