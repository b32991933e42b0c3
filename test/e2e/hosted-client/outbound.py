"""Webhooks to customers."""

import hookbase
from common import PREFIX, RECEIVER, all_of, equal, made, received, refused, until, value


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
    changed = await value(o.endpoints.update(endpoint.id, {"retryDelays": [5, 60], "successStatusCodes": ["2xx", 409]}))
    equal((changed.retry_delays, changed.success_status_codes), ([5, 60], ["2xx", 409]))
    cleared = await value(o.endpoints.update(endpoint.id, {"clear": ["description", "retryDelays", "backoffType", "successStatusCodes", "ipAllowlistNotes"]}))
    equal((cleared.description, cleared.retry_delays, cleared.success_status_codes), (None, None, None))
    equal((await value(o.endpoints.get(endpoint.id))).url, f"{RECEIVER}/hooks")
    equal({each.id for each in (await value(o.endpoints.list(application_id=application.id, is_disabled=False))).data}, {endpoint.id, gone.id})
    await value(o.endpoints.reset_circuit(endpoint.id))
    tested = await value(o.endpoints.test(endpoint.id, event_type=event_type.name, payload={"id": "o-0"}))
    equal((tested["data"]["success"], tested["data"]["responseStatus"]), (True, 200))
    await refused("outbound.endpoints.verify", lambda: o.endpoints.verify(endpoint.id), hookbase.NotFoundError)
    ed25519 = await value(o.endpoints.create(application.id, {"url": RECEIVER, "signatureScheme": "ed25519"}))
    equal((ed25519.signature_scheme, ed25519.public_key[:5], len(ed25519.public_key)), ("ed25519", "whpk_", 49))
    rekeyed = await value(o.endpoints.rotate_secret(ed25519.id, grace_period=600))
    equal((rekeyed.signature_scheme, rekeyed.previous_public_key, rekeyed.public_key != ed25519.public_key), ("ed25519", ed25519.public_key, True))
    await value(o.endpoints.delete(ed25519.id))

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
