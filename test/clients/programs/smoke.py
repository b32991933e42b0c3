import os
import time

from posthorn_client import AuthenticatedClient
from posthorn_client.api.deliveries import get_delivery
from posthorn_client.api.destinations import create_destination, delete_destination, get_destination, update_destination
from posthorn_client.api.event_types import create_event_type, list_event_types
from posthorn_client.api.events import get_event
from posthorn_client.api.routes import create_route, delete_route, get_route, update_route
from posthorn_client.api.sending_events import send_event
from posthorn_client.api.sources import create_source
from posthorn_client.api.webhook_applications import create_webhook_application, delete_webhook_application
from posthorn_client.api.webhook_endpoints import create_webhook_endpoint
from posthorn_client.api.webhook_subscriptions import create_webhook_subscription
from posthorn_client.models import (
    CreateDestinationBody,
    CreateEventTypeBody,
    CreateRouteBody,
    CreateSourceBody,
    CreateWebhookApplicationBody,
    CreateWebhookEndpointBody,
    CreateWebhookSubscriptionBody,
    Destination,
    Error,
    SendEventBody,
    UpdateDestinationBody,
    UpdateRouteBody,
)
from posthorn_client.types import UNSET

url, receiver = os.environ["POSTHORN_URL"], os.environ["RECEIVER_URL"]
api = AuthenticatedClient(base_url=f"{url}/api", token=os.environ["POSTHORN_KEY"])

source = create_source.sync(client=api, body=CreateSourceBody(name="Python"))
destination = create_destination.sync(client=api, body=CreateDestinationBody(name="Python", url=receiver))
route = create_route.sync(client=api, body=CreateRouteBody(name="Python", source_id=source.id, destination_ids=[destination.id]))
assert destination.timeout_ms == 30_000 and route.priority == 0

taken = api.get_httpx_client().post(f"{url}/ingest/default/{source.slug}", json={"order": 7}).json()
deadline = time.monotonic() + 30
while True:
    delivered = [each for each in get_event.sync(taken["eventId"], client=api).deliveries if each.status == "delivered"]
    if delivered:
        break
    assert time.monotonic() < deadline, "there was no delivery"
    time.sleep(0.1)
delivery = get_delivery.sync(delivered[0].id, client=api)
assert delivery.route_id == route.id and delivery.attempt_details[0].response_status == 200

record = get_destination.sync(destination.id, client=api)
assert isinstance(record, Destination)
body = UpdateDestinationBody.from_dict({**record.to_dict(), "timeoutMs": 5000})
assert update_destination.sync(destination.id, client=api, body=body).timeout_ms == 5000
# What is not sent stays: no default of the client goes along.
assert update_destination.sync(destination.id, client=api, body=UpdateDestinationBody(name="Renamed")).timeout_ms == 5000
body = UpdateRouteBody.from_dict({**get_route.sync(route.id, client=api).to_dict(), "priority": 3})
assert update_route.sync(route.id, client=api, body=body).priority == 3

missing = get_destination.sync_detailed("nothing", client=api)
assert missing.status_code == 404 and isinstance(missing.parsed, Error) and missing.parsed.code == "RESOURCE_NOT_FOUND"

application = create_webhook_application.sync(client=api, body=CreateWebhookApplicationBody(name="Python")).data
endpoint = create_webhook_endpoint.sync(client=api, body=CreateWebhookEndpointBody(application_id=application.id, url=receiver)).data
assert endpoint.secret.startswith("whsec_")
names = ["python.a", "python.b", "python.c"]
for name in names:
    create_event_type.sync(client=api, body=CreateEventTypeBody(name=name))
create_webhook_subscription.sync(client=api, body=CreateWebhookSubscriptionBody(endpoint_id=endpoint.id, event_type_id="python.a"))
sent = send_event.sync(client=api, body=SendEventBody(event_type="python.a", payload={"id": 1})).data
assert sent.messages_queued == 1 and sent.endpoints[0].id == endpoint.id

listed, cursor, has_more = [], UNSET, True
while has_more:
    page = list_event_types.sync(client=api, limit=2, search="python", cursor=cursor)
    listed += [each.name for each in page.data]
    has_more, cursor = page.pagination.has_more, page.pagination.next_cursor
assert sorted(listed) == names

assert delete_route.sync_detailed(route.id, client=api).status_code == 204
assert delete_destination.sync_detailed(destination.id, client=api).status_code == 204
assert delete_webhook_application.sync(application.id, client=api).success is True
print("done")
