"""What comes in and goes on."""

import hookbase
import httpx
import pydantic
from common import PREFIX, RECEIVER, SECRET, URL, all_of, equal, made, received, refused, until, value


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
    for sent, wanted in (("1", True), ("false", False)):
        assert {each.signature_valid for each in (await value(c.events.list(signature_valid=sent))).data} <= {wanted}
    for name in ("event_type", "search"):
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
