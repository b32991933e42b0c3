"""Cron jobs, keys, figures, deletions and errors."""

import hookbase
from common import KEY, KIND, PREFIX, RECEIVER, URL, Client, equal, made, raises, refused, value


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
    equal([(each.id, each.slug, each.role) for each in await value(c.organizations.list())], [(own, "default", "admin")])
    await refused("organizations.create", lambda: c.organizations.create("Acme", "acme"), hookbase.APIError)
    for name, arguments in {
        "get": (own,), "update": (own, {"name": "Acme"}), "list_members": (own,),
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
