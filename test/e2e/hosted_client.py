"""Calls every public method of the Python client of the hosted API, and writes what became of each as JSON.

    python hosted_client.py sync|async URL KEY
"""

import asyncio
import http.server
import inspect
import json
import sys
import threading
import time
import traceback
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

failures = []
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


async def sources(c):
    params = hookbase.models.CreateSourceParams(
        name="GitHub", slug=f"{PREFIX}-github", provider="github", signing_secret="a-long-random-secret",
        reject_invalid_signatures=True, rate_limit_per_minute=600, ip_filter_mode="denylist", ip_denylist=["192.0.2.0/24"],
        encrypt_fields=[], mask_fields=[], dedup_enabled=True, dedup_strategy="payload_hash", dedup_window_hours=48,
        transient_mode=False, allowed_methods=["POST"],
    )
    source = await value(c.sources.create(params))
    equal((source.organization_id, source.slug, source.is_active), (made.organization, f"{PREFIX}-github", True))
    assert source.ingest_url.endswith(f"/ingest/default/{PREFIX}-github")
    wanted = (True, "cret", True, 600, "denylist", ["192.0.2.0/24"], True, "payload_hash", 48, ["POST"])
    read = await value(c.sources.get(source.id))
    listed = next(each for each in (await value(c.sources.list(page_size=100))).data if each.id == source.id)
    for each in (read, listed):
        shown = (
            each.has_signing_secret, each.signing_secret_last4 or "cret", each.reject_invalid_signatures, each.rate_limit_per_minute,
            each.ip_filter_mode, each.ip_denylist, each.dedup_enabled, each.dedup_strategy, each.dedup_window_hours, each.allowed_methods,
        )
        equal(shown, wanted)
    await value(c.sources.update(source.id, hookbase.models.UpdateSourceParams(
        name="Orders", is_active=False, dedup_enabled=False, dedup_custom_header="x-order", clear=["signingSecret", "rateLimitPerMinute"],
    )))
    read = await value(c.sources.get(source.id))
    shown = (read.name, read.is_active, read.dedup_enabled, read.dedup_strategy, read.dedup_custom_header, read.has_signing_secret, read.rate_limit_per_minute)
    equal(shown, ("Orders", False, False, "none", "x-order", False, None))
    await value(c.sources.update(source.id, {"isActive": True, "provider": "generic"}))
    assert len(await value(c.sources.rotate_secret(source.id))) == 64
    await value(c.sources.update(source.id, {"signingSecret": None, "rejectInvalidSignatures": False}))
    made.source = source
    exported = await value(c.sources.export(ids=[source.id]))
    equal([each["slug"] for each in exported["sources"]], [source.slug])
    records = [
        {**exported["sources"][0], "slug": f"{PREFIX}-copy"},
        {"name": "Signed", "slug": f"{PREFIX}-signed", "provider": "github", "hasSigningSecret": True, "dedupEnabled": False, "dedupStrategy": "auto"},
    ]
    result = await value(c.sources.import_sources(records, validate_only=True))
    equal((result.success, result.summary.imported), (True, 2))
    result = await value(c.sources.import_sources(records))
    equal((result.success, result.details.imported), (True, ["Orders", "Signed"]))
    signed = await value(c.sources.get(f"{PREFIX}-signed"))
    equal((signed.is_active, signed.dedup_enabled), (False, False))
    equal((await value(c.sources.import_sources(records, conflict_strategy="skip"))).details.skipped, ["Orders", "Signed"])
    foreign = [{"name": "Mail", "slug": f"{PREFIX}-mail", "provider": "mailchimp"}]
    await refused("sources.import_sources of a record that fails", lambda: c.sources.import_sources(foreign), pydantic.ValidationError)
    equal((await value(c.sources.bulk_delete([f"{PREFIX}-signed", "unknown"]))).deleted, 1)
    for name in ("reveal_secret", "verify_token", "rotate_verify_token", "get_pending_verification", "adopt_pending_verification"):
        await refused(f"sources.{name}", lambda: getattr(c.sources, name)(source.id), hookbase.NotFoundError)
    wanted = {"name": "Off", "slug": f"{PREFIX}-off", "transientMode": True}
    await refused("sources.create with transient_mode", lambda: c.sources.create(wanted), hookbase.ValidationError)


async def destinations(c):
    first = await value(c.destinations.create({"name": f"{PREFIX} Café EU", "url": f"{RECEIVER}/orders", "signingSecret": SECRET}))
    equal((first.organization_id, first.slug, first.is_active, first.use_static_ip), (made.organization, f"{PREFIX}-cafe-eu", True, False))
    params = hookbase.models.CreateDestinationParams(
        name="Second", slug=f"{PREFIX}-second", url=f"{RECEIVER}/second", method="PUT", headers={"x-tenant": "acme"}, auth_type="bearer",
        auth_config={"token": "a-long-random-token"}, timeout_ms=5000, throttle=hookbase.models.Throttle(mode="rate", rate_limit=100, rate_unit="second"),
    )
    second = await value(c.destinations.create(params))
    listed = next(each for each in (await value(c.destinations.list(page_size=100))).data if each.id == second.id)
    for each in (second, listed, await value(c.destinations.get(second.id))):
        shown = (each.method, each.auth_type, each.timeout_ms, each.timeout, each.throttle.mode, each.throttle.rate_limit, each.use_static_ip)
        equal(shown, ("PUT", "bearer", 5000, 5000, "rate", 100, False))
    await value(c.destinations.update(second.id, hookbase.models.UpdateDestinationParams(name="Renamed", is_active=False)))
    read = await value(c.destinations.get(second.id))
    equal((read.name, read.is_active, read.headers), ("Renamed", False, {"x-tenant": "acme"}))
    await value(c.destinations.update(second.id, {"isActive": True}))
    tested = await value(c.destinations.test(first.id))
    equal((tested.success, tested.status, tested.response_body), (True, 200, "ok"))
    assert tested.latency_ms is not None
    exported = await value(c.destinations.export(ids=[second.id]))
    record = {**exported["destinations"][0], "slug": f"{PREFIX}-third", "name": "Third"}
    result = await value(c.destinations.import_destinations([record], conflict_strategy="rename"))
    equal((result.success, result.details.imported), (True, ["Third"]))
    equal((await value(c.destinations.get(f"{PREFIX}-third"))).is_active, False)
    broken = [{"name": "Broken", "url": "nowhere"}]
    await refused("destinations.import_destinations of a record that fails", lambda: c.destinations.import_destinations(broken), pydantic.ValidationError)
    equal((await value(c.destinations.bulk_delete([f"{PREFIX}-third"]))).deleted, 1)
    made.first, made.second = first, second
    r2 = hookbase.models.CreateDestinationParams(name="Lake", type="r2", config={"bucket": "events"})
    await refused("destinations.create of type r2 without endpoint and keys", lambda: c.destinations.create(r2), hookbase.ValidationError)


async def parts(c):
    transform = await value(c.transforms.create(hookbase.models.CreateTransformParams(
        name=f"{PREFIX} Extract", transform_type="jsonata", code="payload.data", input_format="json", output_format="json",
    )))
    equal((transform.organization_id, transform.transform_type, transform.code), (made.organization, "jsonata", "payload.data"))
    changed = await value(c.transforms.update(transform.id, {"transformType": "javascript", "code": "(event) => event.payload"}))
    equal((changed.transform_type, (await value(c.transforms.get(transform.id))).code), ("javascript", "(event) => event.payload"))
    assert transform.id in [each.id for each in (await value(c.transforms.list())).data]
    tried = await value(c.transforms.test(code="payload.data", payload={"data": {"key": "value"}}))
    equal((tried.success, tried.result, tried.content_type), (True, {"key": "value"}, "application/json"))
    await refused(
        "transforms.create with a type that Posthorn does not have",
        lambda: c.transforms.create({"name": "Old", "transformType": "xslt", "code": "x"}), hookbase.ValidationError,
    )
    kept = hookbase.models.FilterCondition(field="kind", operator="equals", value="order")
    filter_ = await value(c.filters.create(hookbase.models.CreateFilterParams(name=f"{PREFIX} Orders", conditions=[kept], logic="or")))
    equal((filter_.organization_id, filter_.logic, filter_.conditions), (made.organization, "OR", [kept]))
    await value(c.filters.update(filter_.id, {"logic": "and"}))
    equal((await value(c.filters.get(filter_.id))).logic, "AND")
    assert filter_.id in [each.id for each in (await value(c.filters.list())).data]
    judged = await value(c.filters.test([kept], {"kind": "order"}, logic="or"))
    equal((judged.matches, [each["matches"] for each in judged.results], judged.logic), (True, [True], "OR"))
    schema = await value(c.schemas.create({"name": f"{PREFIX} Order", "jsonSchema": {"type": "object", "required": ["kind"]}}))
    await value(c.schemas.update(schema.id, {"description": "What an order is"}))
    read = await value(c.schemas.get(schema.id))
    equal((read.organization_id, read.description, read.json_schema), (made.organization, "What an order is", {"type": "object", "required": ["kind"]}))
    assert schema.id in [each.id for each in (await value(c.schemas.list())).data]
    equal((await value(c.schemas.validate(schema.id, {"kind": "order"}))).valid, True)
    broken = await value(c.schemas.validate(schema.id, {}))
    equal((broken.valid, len(broken.errors)), (False, 1))
    made.transform, made.filter, made.schema = transform, filter_, schema


async def routes(c):
    route = await value(c.routes.create(hookbase.models.CreateRouteParams(
        name=f"{PREFIX} route", source_id=made.source.id, destination_id=made.first.id, filter_id=made.filter.id, schema_id=made.schema.id,
        priority=5, is_active=True, notify_on_failure=True, failover_destination_ids=[made.second.id], failover_after_attempts=2,
    )))
    listed = next(each for each in (await value(c.routes.list(page_size=100))).data if each.id == route.id)
    for each in (route, listed, await value(c.routes.get(route.id))):
        shown = (each.organization_id, each.source_id, each.destination_id, each.filter_id, each.schema_id, each.priority, each.is_active)
        equal(shown, (made.organization, made.source.id, made.first.id, made.filter.id, made.schema.id, 5, True))
        equal((each.notify_on_failure, each.failover_destination_ids, each.failover_after_attempts), (True, [made.second.id], 2))
    update = hookbase.models.UpdateRouteParams(destination_id=made.second.id, failover_destination_ids=[], is_active=False)
    await value(c.routes.update(route.id, update))
    read = await value(c.routes.get(route.id))
    equal((read.destination_id, read.failover_destination_ids, read.is_active), (made.second.id, [], False))
    await value(c.routes.update(route.id, {"destinationId": made.first.id}))
    equal(await value(c.routes.bulk_update([route.id], True)), {"success": True, "updated": 1})
    equal((await value(c.routes.get(route.id))).is_active, True)
    await value(c.routes.update_circuit_config(route.id, hookbase.models.CircuitBreakerConfig(circuit_cooldown_seconds=60)))
    circuit = await value(c.routes.get_circuit_status(route.id))
    equal((circuit.circuit_state, circuit.cooldown_seconds, circuit.consecutive_failures), ("closed", 60, 0))
    await value(c.routes.reset_circuit(route.id))
    exported = await value(c.routes.export(ids=[route.id]))
    equal([each["destinationSlug"] for each in exported["routes"]], [made.first.slug])
    copy = [{**exported["routes"][0], "name": f"{PREFIX} copy"}]
    # The routes are there, and the client cannot read the answer.
    await refused("routes.import_routes", lambda: c.routes.import_routes(copy, conflict_strategy="rename"), pydantic.ValidationError)
    copies = [each for each in await all_of((await value(c.routes.list(page_size=1))).auto_paging_iter()) if each.name == f"{PREFIX} copy"]
    equal((await value(c.routes.bulk_delete([each.id for each in copies]))).deleted, 1)
    made.route = route


async def deliveries(c):
    url = f"{URL}/ingest/default/{made.source.slug}"
    for number in range(3):
        httpx.post(url, json={"kind": "order", "number": number}, headers={"x-order": f"{PREFIX}-{number}"}).raise_for_status()

    async def delivered():
        return len((await value(c.deliveries.list(route_id=made.route.id, status="delivered"))).data) == 3

    await until("three deliveries", delivered)
    page = await value(c.deliveries.list(route_id=made.route.id, status="delivered", limit=2))
    found = await all_of(page.auto_paging_iter())
    equal(len(found), 3)
    page = await value(c.deliveries.list(route_id=made.route.id, limit=2))
    equal((page.has_more, len(page), len(list(page))), (True, 2, 2))
    equal([each.id for each in page.data + (await value(page.next_page())).data], [each.id for each in found])
    delivery = found[0]
    equal((delivery.organization_id, delivery.attempt_count, delivery.response_status, delivery.error_message), (made.organization, 1, 200, None))
    assert delivery.delivered_at and delivery.completed_at
    read = await value(c.deliveries.get(delivery.id))
    equal((read.id, read.attempts, read.status_code), (delivery.id, 1, 200))
    of_event = await value(c.deliveries.list(event_id=delivery.event_id, destination_id=made.first.id))
    equal([each.id for each in of_event.data], [delivery.id])
    first = await until("a request", lambda: [each for each in received if each.path == "/orders" and b"number" in each.body])
    equal(hookbase.Webhook(SECRET).verify(first[0].body, first[0].headers)["kind"], "order")

    page = await value(c.events.list(source_id=made.source.slug, limit=1, from_date="2024-01-01", to_date="2100-01-01", status="delivered"))
    events = await all_of(page.auto_paging_iter())
    equal((len(events), page.has_more, len(page), len(list(page))), (3, True, 1, 1))
    equal((await value(page.next_page())).data[0].id, events[1].id)
    event = events[0]
    equal((event.organization_id, event.source_id, event.source_slug, event.source_name), (made.organization, made.source.id, made.source.slug, "Orders"))
    read = await value(c.events.get(delivery.event_id))
    equal((read.payload["kind"], read.source_name, read.headers["x-order"][:1]), ("order", "Orders", PREFIX))
    equal([(each.id, each.status, each.attempt_count) for each in read.deliveries], [(delivery.id, "delivered", 1)])
    for name in ("event_type", "search", "signature_valid"):
        await refused(f"events.list with {name}", lambda: c.events.list(**{name: "1"}), hookbase.ValidationError)
    await refused("events.debug", lambda: c.events.debug(event.id), hookbase.NotFoundError)
    await refused("events.export", lambda: c.events.export(), hookbase.NotFoundError)

    again = await value(c.deliveries.replay(delivery.id))
    assert again.delivery_id != delivery.id and again.message
    many = await value(c.deliveries.bulk_replay([found[1].id, "unknown"]))
    equal((many.queued, many.skipped), (1, 1))
    of_events = await value(c.deliveries.bulk_replay_events([found[2].event_id]))
    equal((of_events.queued, of_events.events_processed), (1, 1))
    await until("six requests", lambda: len([each for each in received if each.path == "/orders" and b"number" in each.body]) == 6)


async def cron(c):
    params = hookbase.models.CreateCronJobParams(
        name=f"{PREFIX} report", url=f"{RECEIVER}/cron", method="PUT", cron_expression="0 0 1 1 *", headers={"x-report": "yes"},
        timezone="Europe/Vienna", timeout_ms=5000, is_active=True, use_static_ip=False, notify_on_failure=False,
    )
    job = await value(c.cron_jobs.create(params))
    listed = next(each for each in (await value(c.cron_jobs.list())).data if each.id == job.id)
    for each in (job, listed, await value(c.cron_jobs.get(job.id))):
        shown = (each.organization_id, each.method, each.timezone, each.timeout_ms, each.is_active, each.use_static_ip)
        equal(shown, (made.organization, "PUT", "Europe/Vienna", 5000, True, False))
    equal((await value(c.cron_jobs.get(job.id))).headers, {"x-report": "yes"})
    await value(c.cron_jobs.update(job.id, hookbase.models.UpdateCronJobParams(is_active=False)))
    equal((await value(c.cron_jobs.get(job.id))).is_active, False)
    run = await value(c.cron_jobs.trigger(job.id))
    equal((run.status, run.response_status), ("success", 200))
    executions = await value(c.cron_jobs.list_executions(job.id, limit=5))
    equal([(each.id, each.cron_job_id, each.response_status) for each in executions], [(run.id, job.id, 200)])
    await refused("cron_jobs.list_groups", lambda: c.cron_jobs.list_groups(), hookbase.NotFoundError)
    await refused("cron_jobs.create_group", lambda: c.cron_jobs.create_group({"name": "Nightly"}), hookbase.NotFoundError)
    wanted = {"name": "Loud", "url": RECEIVER, "cronExpression": "0 0 1 1 *", "notifyOnFailure": True}
    await refused("cron_jobs.create with notify_on_failure", lambda: c.cron_jobs.create(wanted), hookbase.ValidationError)
    await value(c.cron_jobs.delete(job.id))


async def outbound(c):
    o = c.outbound
    application = await value(o.applications.create({"name": "Acme", "uid": f"{PREFIX}-acme", "metadata": {"tier": "gold"}}))
    equal((application.organization_id, application.external_id, application.uid, application.metadata), (made.organization, f"{PREFIX}-acme", f"{PREFIX}-acme", {"tier": "gold"}))
    equal((await value(o.applications.get_by_external_id(f"{PREFIX}-acme"))).id, application.id)
    upserted, created = await value(o.applications.upsert(hookbase.models.CreateApplicationParams(name="Acme Corp", external_id=f"{PREFIX}-acme")))
    equal((upserted.id, upserted.name, created), (application.id, "Acme Corp", False))
    equal((await value(o.applications.update(application.id, {"rateLimitPerSecond": 50}))).rate_limit_per_second, 50)
    equal((await value(o.applications.get(application.id))).name, "Acme Corp")
    other = await value(o.applications.create({"name": "Other"}))
    page = await value(o.applications.list(limit=1))
    assert {application.id, other.id} <= {each.id for each in await all_of(page.auto_paging_iter())}

    event_type = await value(o.event_types.create(hookbase.models.CreateEventTypeParams(
        name=f"order.{PREFIX}", category="orders", schema={"type": "object"}, example_payload={"id": "o-1"},
    )))
    equal((event_type.organization_id, event_type.schema_, event_type.example_payload), (made.organization, {"type": "object"}, {"id": "o-1"}))
    second_type = await value(o.event_types.create({"name": f"order.{PREFIX}2"}))
    equal((await value(o.event_types.update(event_type.id, {"description": "An order"}))).description, "An order")
    equal((await value(o.event_types.get(event_type.id))).description, "An order")
    assert event_type.id in [each.id for each in (await value(o.event_types.list(category="orders", is_enabled=True, search=f"order.{PREFIX}"))).data]

    endpoint = await value(o.endpoints.create(application.id, hookbase.models.CreateEndpointParams(
        url=f"{RECEIVER}/hooks", headers={"x-tenant": "acme"}, signature_scheme="hmac-sha256", timeout_seconds=10, use_static_ip=False,
    )))
    equal((endpoint.headers, endpoint.timeout_seconds, endpoint.signature_scheme, endpoint.public_key), ({"x-tenant": "acme"}, 10, "hmac-sha256", None))
    gone = await value(o.endpoints.create(application.id, {"url": f"{RECEIVER}/gone"}))
    changed = await value(o.endpoints.update(endpoint.id, {"description": "Production", "rateLimit": 100}))
    equal((changed.description, changed.rate_limit_per_second), ("Production", 100))
    cleared = await value(o.endpoints.update(endpoint.id, {"clear": ["description", "retryDelays", "backoffType", "successStatusCodes", "ipAllowlistNotes"]}))
    equal((cleared.description, cleared.retry_delays), (None, None))
    equal((await value(o.endpoints.get(endpoint.id))).url, f"{RECEIVER}/hooks")
    equal({each.id for each in (await value(o.endpoints.list(application_id=application.id, is_disabled=False))).data}, {endpoint.id, gone.id})
    await value(o.endpoints.reset_circuit(endpoint.id))
    tested = await value(o.endpoints.test(endpoint.id, event_type=event_type.name, payload={"id": "o-0"}))
    equal((tested["data"]["success"], tested["data"]["responseStatus"]), (True, 200))
    await refused("outbound.endpoints.verify", lambda: o.endpoints.verify(endpoint.id), hookbase.NotFoundError)
    ed25519 = {"url": RECEIVER, "signatureScheme": "ed25519"}
    await refused("outbound.endpoints.create with ed25519", lambda: o.endpoints.create(application.id, ed25519), hookbase.ValidationError)

    subscription = await value(o.subscriptions.create(hookbase.models.CreateSubscriptionParams(
        endpoint_id=endpoint.id, event_type_id=event_type.id, label_filters={"region": ["eu", "us"]}, label_filter_mode="all",
    )))
    equal((subscription.event_type_name, subscription.application_name), (event_type.name, "Acme Corp"))
    equal((await value(o.subscriptions.update(subscription.id, {"labelFilters": {"region": "eu"}}))).label_filters, {"region": "eu"})
    equal((await value(o.subscriptions.get(subscription.id))).endpoint_url, f"{RECEIVER}/hooks")
    more = await value(o.subscriptions.bulk_create(gone.id, [event_type.id, second_type.id]))
    equal([(each.endpoint_id, each.event_type_id) for each in more], [(gone.id, event_type.id), (gone.id, second_type.id)])
    listed = await value(o.subscriptions.list(application_id=application.id, is_enabled=True, limit=2))
    equal(len(await all_of(listed.auto_paging_iter())), 3)

    old = endpoint.secret
    rotated = await value(o.endpoints.rotate_secret(endpoint.id, grace_period=600))
    equal((rotated.secret_version, rotated.secret != old, rotated.previous_secret_expires_at is not None), (2, True, True))
    sent = await value(o.messages.send(
        application.id, event_type=event_type.name, payload={"id": "o-1"}, labels={"region": "eu"}, metadata={"source": "shop"},
        idempotency_key=f"{PREFIX}-order-1", priority=1,
    ))
    equal((sent.messages_queued, {each.id for each in sent.endpoints}), (2, {endpoint.id, gone.id}))
    repeated = await value(o.messages.send(
        application.id, event_type=event_type.name, payload={"id": "o-1"}, labels={"region": "eu"}, metadata={"source": "shop"},
        idempotency_key=f"{PREFIX}-order-1", priority=1,
    ))
    equal(repeated.event_id, sent.event_id)
    arrived = await until("a message", lambda: [each for each in received if each.path == "/hooks" and b"o-1" in each.body])
    # During the grace period both secrets verify what is delivered.
    for secret in (old, rotated.secret):
        webhook = hookbase.Webhook(secret)
        equal((webhook.signature_scheme, webhook.verify(arrived[0].body, arrived[0].headers)), ("hmac-sha256", {"id": "o-1"}))
    forged = {**arrived[0].headers, "webhook-id": "msg_other"}
    try:
        hookbase.Webhook(rotated.secret).verify(arrived[0].body, forged)
        raise AssertionError("a forged message is verified")
    except hookbase.WebhookVerificationError:
        pass
    webhook = hookbase.Webhook(rotated.secret)
    equal(webhook.verify("{}", webhook.generate_test_headers("{}")), {})

    async def dead_letter():
        return (await value(o.dlq.list(endpoint_id=gone.id, dlq_reason="endpoint_not_found", event_type=event_type.name))).data

    [dead] = await until("a dead letter", dead_letter)
    equal((dead.event_id, dead.dlq_reason, dead.last_response_status), (sent.event_id, "endpoint_not_found", 410))
    stats = await value(o.dlq.stats())
    assert stats.total >= 1 and gone.id in [each.endpoint_id for each in stats.by_endpoint] and gone.id in [each.endpoint_id for each in stats.top_failing_endpoints]
    async def success():
        return (await value(o.message_log.list(application_id=application.id, endpoint_id=endpoint.id, status="success", event_type=event_type.name))).data

    [message] = await until("a message in the log", success)
    read = await value(o.message_log.get(message.id))
    equal((read.event_id, read.endpoint_url, read.attempts, read.last_response_status), (sent.event_id, f"{RECEIVER}/hooks", 1, 200))
    [attempt] = await value(o.message_log.list_attempts(message.id))
    equal((attempt.message_id, attempt.attempt_number, attempt.status, attempt.response_status), (message.id, 1, "success", 200))
    replayed = await value(o.message_log.replay(message.id))
    equal((replayed.original_message_id, replayed.status), (message.id, "queued"))
    stats = await value(o.message_log.stats())
    assert stats.total >= 3 and stats.dlq >= 1
    exported = await value(o.message_log.export(type="messages", application_id=application.id))
    assert message.id in [each["id"] for each in exported["data"]]
    assert (await value(o.message_log.export(format="csv"))).startswith("id,eventType")
    await value(o.endpoints.update(gone.id, {"isDisabled": False}))
    retried = await value(o.dlq.retry(dead.id))
    equal((retried.original_message_id, retried.status), (dead.id, "queued"))
    await value(o.endpoints.update(gone.id, {"isDisabled": False}))
    many = await value(o.dlq.retry_bulk([dead.id, "unknown"]))
    equal((many.queued, many.skipped, [each.original_message_id for each in many.messages]), (1, 1, [dead.id]))
    await value(o.dlq.delete(dead.id))

    async def more_dead_letters():
        found = (await value(o.dlq.list(endpoint_id=gone.id))).data
        return found if len(found) >= 1 else None

    others = await until("another dead letter", more_dead_letters)
    equal((await value(o.dlq.bulk_delete([each.id for each in others]))).deleted, len(others))
    await refused("outbound.portal_tokens.create", lambda: o.portal_tokens.create(application.id), hookbase.NotFoundError)
    await refused("outbound.portal_tokens.list", lambda: o.portal_tokens.list(application.id), hookbase.NotFoundError)
    await refused("outbound.portal_tokens.revoke", lambda: o.portal_tokens.revoke("token"), hookbase.NotFoundError)

    await value(o.subscriptions.delete(subscription.id))
    await value(o.endpoints.delete(endpoint.id))
    await value(o.event_types.delete(event_type.id))
    await value(o.applications.delete(application.id))


async def administration(c):
    key = await value(c.api_keys.create({"name": f"{PREFIX} reader", "scopes": ["read"], "expiresInDays": 1}))
    assert key.key.startswith(key.key_prefix) and len(key.key) > 20
    listed = next(each for each in await value(c.api_keys.list()) if each.id == key.id)
    equal((listed.scopes, listed.key_prefix, listed.is_disabled, listed.expires_at is not None), (["read"], key.key_prefix, False, True))
    reader = hookbase.Hookbase(key.key, base_url=URL, max_retries=0)
    reader.sources.list()
    try:
        reader.sources.create({"name": "No", "slug": "no"})
        raise AssertionError("a reader creates a source")
    except hookbase.ForbiddenError as error:
        assert error.code == "FORBIDDEN" and error.request_id
    await value(c.api_keys.delete(key.id))
    await refused("api_keys.create with expires_in", lambda: c.api_keys.create({"name": "No", "expiresIn": 1}), hookbase.ValidationError)
    board = await value(c.analytics.dashboard(range="24h", tz="Europe/Vienna"))
    assert board.overview.total_events >= 3 and board.overview.successful_deliveries >= 3 and board.latency.percentiles.p95 > 0
    equal([(each.priority, each.total_deliveries >= 3) for each in board.routes if each.id == made.route.id], [(5, True)])
    stats = (await value(c.analytics.overview()))["stats"]
    assert stats["total_events"] >= 3 and stats["successful_deliveries"] >= 3
    own = made.organization
    for name, arguments in {
        "list": (), "get": (own,), "create": ("Acme", "acme"), "update": (own, {"name": "Acme"}), "list_members": (own,),
        "update_member": (own, "user", "admin"), "remove_member": (own, "user"), "invite": (own, "user@example.com"),
        "list_invites": (own,), "cancel_invite": (own, "invite"),
    }.items():
        await refused(f"organizations.{name}", lambda: getattr(c.organizations, name)(*arguments), hookbase.NotFoundError)
    for name, arguments in {
        "list": (), "get": ("t",), "create": ({"name": "dev"},), "update": ("t", {"name": "dev"}), "delete": ("t",),
        "regenerate_token": ("t",), "disconnect": ("t",), "bulk_delete": (["t"],),
    }.items():
        await refused(f"tunnels.{name}", lambda: getattr(c.tunnels, name)(*arguments), hookbase.NotFoundError)
    for name, arguments in {"list": (), "get": ("github",), "events": ("github",)}.items():
        await refused(f"providers.{name}", lambda: getattr(c.providers, name)(*arguments), hookbase.NotFoundError)


async def deletions(c):
    try:
        await value(c.sources.delete(made.source.id))
        raise AssertionError("a source with a route is deleted")
    except hookbase.ConflictError as error:
        equal((error.status_code, error.code), (409, "IN_USE"))
    await value(c.routes.delete(made.route.id))
    for owner, record in (
        (c.sources, made.source), (c.destinations, made.first), (c.transforms, made.transform), (c.filters, made.filter), (c.schemas, made.schema),
    ):
        await value(owner.delete(record.id))
    page = await value(c.destinations.list(page_size=1))
    equal((page.page, page.page_size, len(page), len(list(page)), page.has_more), (1, 1, min(page.total, 1), min(page.total, 1), page.total > 1))
    equal((await value(page.next_page())).page, 2)


async def raises(call, kind):
    try:
        await value(call())
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


async def errors(c):
    missing = await raises(lambda: c.sources.get("unknown"), hookbase.NotFoundError)
    equal((missing.status_code, missing.code), (404, "RESOURCE_NOT_FOUND"))
    assert missing.request_id
    wrong = await raises(lambda: c.destinations.create({"name": "Bad", "slug": "bad", "url": "nowhere"}), hookbase.ValidationError)
    equal((wrong.status_code, wrong.code), (400, "INVALID_URL"))
    wrong = await raises(lambda: c.outbound.event_types.create({"name": "No spaces"}), hookbase.ValidationError)
    assert "name" in wrong.details
    elsewhere = Client(KEY, base_url="http://127.0.0.1:9", max_retries=0)
    await raises(lambda: elsewhere.sources.list(), hookbase.NetworkError)
    await value(elsewhere.close())
    slow = Client(KEY, base_url=f"{RECEIVER}/slow", max_retries=0, timeout=0.2)
    await raises(lambda: slow.sources.list(), hookbase.TimeoutError)
    await value(slow.close())
    stranger = Client("ph_stranger", base_url=URL, max_retries=0)
    kinds = set()
    for _ in range(20):
        error = await raises(lambda: stranger.sources.list(), hookbase.APIError)
        kinds.add(type(error))
        if isinstance(error, hookbase.RateLimitError):
            assert 0 < error.retry_after <= 60, error.retry_after
    # Those that the other client has been refused count, too.
    assert hookbase.RateLimitError in kinds and kinds <= {hookbase.AuthenticationError, hookbase.RateLimitError}, kinds
    assert KIND == "async" or hookbase.AuthenticationError in kinds
    await value(stranger.close())


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
