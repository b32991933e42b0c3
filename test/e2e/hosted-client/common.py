"""The client, what is noted of its calls, and a receiver. The arguments of the program are those of `calls.py`."""

import asyncio
import http.server
import inspect
import sys
import threading
import time
import warnings
from types import SimpleNamespace

import httpx
import hookbase
import pydantic

warnings.simplefilter("ignore")
KIND, URL, KEY = sys.argv[1:4]
PREFIX = KIND[0]
SECRET = "whsec_" + "TUW8Ek9wbaiGTbRBFpDpJf507MdboyHI" + "+22wHq9o9eA="

received = []


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        received.append(SimpleNamespace(path=self.path, headers=dict(self.headers.items()), body=body))
        if "slow" in self.path:
            time.sleep(0.5)
        answer = b"ok"
        if "slow" in self.path:
            return
        self.send_response(410 if "gone" in self.path else 200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_POST

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
RECEIVER = f"http://127.0.0.1:{server.server_port}"


async def value(result):
    return await result if inspect.isawaitable(result) else result


async def all_of(pages):
    if hasattr(pages, "__aiter__"):
        return [item async for item in pages]
    return list(pages)


async def until(what, look):
    for _ in range(300):
        found = await value(look())
        if found:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


# What is called, by the classes of the client.
Client = hookbase.Hookbase if KIND == "sync" else hookbase.AsyncHookbase
client = Client(KEY, base_url=URL, max_retries=0)
called = set()
public = {}


def watch(owner, label):
    """Notes each call of a public method of the class of `owner`."""
    kind = type(owner)
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_"):
            continue
        public[f"{label}.{name}"] = method

        def noting(self, *args, _method=method, _label=f"{label}.{name}", **kwargs):
            called.add(_label)
            return _method(self, *args, **kwargs)

        setattr(kind, name, noting)


def is_resource(member):
    return type(member).__module__.startswith("hookbase.resources")


for holder, path in ((client, ""), (client.outbound, "outbound.")):
    names = getattr(type(holder), "__slots__", None) or vars(holder)
    for name in names:
        if not name.startswith("_") and is_resource(getattr(holder, name)):
            watch(getattr(holder, name), path + name)
watch(client, "client")
watch(hookbase.Webhook(SECRET), "Webhook")
sync_or_async = "Sync" if KIND == "sync" else "Async"
for name, kind in inspect.getmembers(sys.modules["hookbase._pagination"], inspect.isclass):
    if name.startswith(sync_or_async) and name.endswith("Page"):
        watch(object.__new__(kind), name.removeprefix(sync_or_async))

refusals = {}


async def refused(label, call, expected):
    """What Posthorn does not serve, and how it says so."""
    try:
        await value(call())
    except expected as error:
        refusals[label] = "pydantic" if isinstance(error, pydantic.ValidationError) else str(error.status_code)
        return
    except Exception as error:
        raise AssertionError(f"{label}: {type(error).__name__} {error}, expected {expected.__name__}") from error
    raise AssertionError(f"{label} works")


def equal(found, wanted):
    assert found == wanted, f"{found!r} is not {wanted!r}"


made = SimpleNamespace()


async def raises(call, kind):
    try:
        await value(call())
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")
