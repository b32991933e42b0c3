"""Calls every public method of the Python client of the hosted API, and writes what became of each as JSON.

    python calls.py sync|async URL KEY
"""

import asyncio
import json
import sys
import time
import traceback

import hookbase
import httpx
from administration import administration, cron, deletions, errors
from common import KEY, PREFIX, URL, called, client, made, public, refusals, value
from inbound import deliveries, destinations, parts, routes, sources
from outbound import outbound

failures = []


async def main():
    made.organization = httpx.post(
        f"{URL}/api/sources", headers={"authorization": f"Bearer {KEY}"}, json={"name": f"{PREFIX} probe"},
    ).json()["organizationId"]
    for part in (sources, destinations, parts, routes, deliveries, cron, outbound, administration, deletions, errors):
        begun = time.monotonic()
        try:
            await part(client)
        except Exception:
            failures.append(f"{part.__name__}: {traceback.format_exc()}")
        print(f"{part.__name__} {time.monotonic() - begun:.1f} s", file=sys.stderr)
    await value(client.close())

asyncio.run(main())
json.dump(
    {"version": hookbase.__version__, "methods": sorted(public), "uncalled": sorted(set(public) - called), "refusals": refusals, "failures": failures},
    sys.stdout,
)
