package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"smoke/client"
)

func check(holds bool, format string, values ...any) {
	if !holds {
		panic(fmt.Sprintf(format, values...))
	}
}

// had takes what an operation answered, and its error.
func had[Answer any](answer Answer, err error) Answer {
	check(err == nil, "%v", err)
	return answer
}

func text(value string) *string { return &value }

func main() {
	ctx := context.Background()
	url, receiver := os.Getenv("POSTHORN_URL"), os.Getenv("RECEIVER_URL")
	withKey := client.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("POSTHORN_KEY"))
		return nil
	})
	api := had(client.NewClientWithResponses(url+"/api", withKey))
	entrance := had(client.NewClientWithResponses(url))

	source := had(api.CreateSourceWithResponse(ctx, nil, client.CreateSourceBody{Name: "Go"})).JSON201
	destination := had(api.CreateDestinationWithResponse(ctx, nil, client.CreateDestinationBody{Name: "Go", Url: &receiver})).JSON201
	check(source != nil && destination != nil, "a source and a destination are made")
	route := had(api.CreateRouteWithResponse(ctx, nil, client.CreateRouteBody{Name: "Go", SourceId: source.Id, DestinationIds: &[]string{destination.Id}})).JSON201
	check(route != nil, "a route is made")

	taken := had(entrance.IngestByPostWithBodyWithResponse(ctx, "default", source.Slug, "application/json", bytes.NewBufferString(`{"order":7}`)))
	check(taken.JSON200 != nil, "%s", taken.Body)
	event := had(taken.JSON200.AsIngestTaken())
	var delivered string
	for deadline := time.Now().Add(30 * time.Second); delivered == ""; time.Sleep(100 * time.Millisecond) {
		check(time.Now().Before(deadline), "there was no delivery")
		for _, each := range had(api.GetEventWithResponse(ctx, event.EventId)).JSON200.Deliveries {
			if each.Status == client.DeliveryStatusDelivered {
				delivered = each.Id
			}
		}
	}
	delivery := had(api.GetDeliveryWithResponse(ctx, delivered)).JSON200
	check(delivery.RouteId == route.Id && *delivery.AttemptDetails[0].ResponseStatus == 200, "the delivery shows its attempt")

	record := had(api.GetDestinationWithResponse(ctx, destination.Id)).JSON200
	var change client.UpdateDestinationBody
	check(json.Unmarshal(had(json.Marshal(record)), &change) == nil, "a record is a change")
	timeoutMs := 5000
	change.TimeoutMs = &timeoutMs
	changed := had(api.UpdateDestinationWithResponse(ctx, destination.Id, nil, change))
	check(changed.JSON200 != nil && *changed.JSON200.TimeoutMs == timeoutMs, "%s", changed.Body)

	missing := had(api.GetDestinationWithResponse(ctx, "nothing"))
	check(missing.JSON404 != nil && missing.JSON404.Code == "RESOURCE_NOT_FOUND", "what is missing is a typed error: %s", missing.Body)

	application := had(api.CreateWebhookApplicationWithResponse(ctx, nil, client.CreateWebhookApplicationBody{Name: "Go"})).JSON201.Data
	endpoint := had(api.CreateWebhookEndpointWithResponse(ctx, nil, client.CreateWebhookEndpointBody{ApplicationId: application.Id, Url: receiver})).JSON201.Data
	check(len(endpoint.Secret) > 20, "the secret is shown once")
	for _, name := range []string{"go.a", "go.b", "go.c"} {
		check(had(api.CreateEventTypeWithResponse(ctx, nil, client.CreateEventTypeBody{Name: name})).JSON201 != nil, "%s is made", name)
	}
	had(api.CreateWebhookSubscriptionWithResponse(ctx, nil, client.CreateWebhookSubscriptionBody{EndpointId: endpoint.Id, EventTypeId: "go.a"}))
	sent := had(api.SendEventWithResponse(ctx, nil, client.SendEventBody{EventType: "go.a", Payload: map[string]int{"id": 1}}))
	check(sent.JSON201 != nil && sent.JSON201.Data.MessagesQueued == 1, "%s", sent.Body)

	listed, limit := map[string]bool{}, 2
	for query := (&client.ListEventTypesParams{Limit: &limit, Search: text("go.")}); ; {
		page := had(api.ListEventTypesWithResponse(ctx, query)).JSON200
		for _, each := range page.Data {
			listed[each.Name] = true
		}
		if !page.Pagination.HasMore {
			break
		}
		query.Cursor = page.Pagination.NextCursor
	}
	check(len(listed) == 3, "all pages together are the list: %v", listed)

	check(had(api.DeleteRouteWithResponse(ctx, route.Id, nil)).StatusCode() == 204, "the route is deleted")
	check(had(api.DeleteDestinationWithResponse(ctx, destination.Id, nil)).StatusCode() == 204, "the destination is deleted")
	check(bool(had(api.DeleteWebhookApplicationWithResponse(ctx, application.Id, nil)).JSON200.Success), "the application is deleted")
	fmt.Println("done")
}
