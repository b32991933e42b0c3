// Made by hack/gen-web-api.ts from the OpenAPI document. Do not edit.

export interface Operations {
  'GET /events': {
    path: Record<string, never>;
    query: { limit?: number; cursor?: string; sourceId?: Array<string>; id?: Array<string>; status?: Array<"pending" | "delivered" | "partial" | "failed" | "filtered" | "no_routes">; signatureValid?: boolean; routeId?: Array<string>; destinationId?: Array<string>; errorType?: Array<"timeout" | "http_error" | "network" | "dns" | "tls" | "blocked" | "gone" | "circuit_open" | "secret_decryption_failed" | "cancelled">; responseStatus?: Array<string>; attemptsMin?: number; attemptsMax?: number; failedFrom?: TimeOrDay; failedTo?: TimeOrDay; where?: string; from?: TimeOrDay; to?: TimeOrDay; fromDate?: TimeOrDay; toDate?: TimeOrDay };
    body: undefined;
    answer: ListEventsResult;
  };
  'GET /events/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Event;
  };
  'GET /deliveries': {
    path: Record<string, never>;
    query: { limit?: number; cursor?: string; offset?: number; eventId?: string; routeId?: Array<string>; destinationId?: Array<string>; status?: Array<"pending" | "processing" | "retrying" | "circuit_open" | "delivered" | "failed" | "filtered" | "schema_failed" | "transform_failed" | "dlq">; errorType?: Array<"timeout" | "http_error" | "network" | "dns" | "tls" | "blocked" | "gone" | "circuit_open" | "secret_decryption_failed" | "cancelled">; id?: Array<string>; responseStatus?: Array<string>; attemptsMin?: number; attemptsMax?: number; failedFrom?: TimeOrDay; failedTo?: TimeOrDay; where?: string; from?: TimeOrDay; to?: TimeOrDay };
    body: undefined;
    answer: ListDeliveriesResult;
  };
  'GET /deliveries/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: GetDeliveryResult;
  };
  'POST /deliveries/{id}/replay': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: ReplayDeliveryResult;
  };
  'POST /deliveries/{id}/cancel': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: CancelDeliveryResult;
  };
  'POST /deliveries/cancel': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CancelDeliveriesByFilterBody;
    answer: CancelledByFilter;
  };
  'POST /deliveries/bulk-replay': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: ReplayDeliveriesBody;
    answer: ReplayDeliveriesResult;
  };
  'POST /deliveries/bulk-cancel': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CancelDeliveriesBody;
    answer: CancelDeliveriesResult;
  };
  'GET /deliveries/dead-letter-stats': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: GetDeadLetterStatsResult;
  };
  'POST /send-event': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: SendEventBody;
    answer: SentEventEnvelope;
  };
  'GET /webhook-events': {
    path: Record<string, never>;
    query: { eventType?: Array<string>; applicationId?: Array<string>; endpointId?: Array<string>; status?: Array<MessageStatus>; errorType?: Array<"timeout" | "http_error" | "network" | "dns" | "tls" | "blocked" | "gone" | "circuit_open" | "secret_decryption_failed" | "disabled" | "cancelled" | "expired" | "filtered" | "schema_failed" | "transform_failed">; id?: Array<string>; responseStatus?: Array<string>; attemptsMin?: number; attemptsMax?: number; failedFrom?: TimeOrDay; failedTo?: TimeOrDay; where?: string; from?: TimeOrDay; to?: TimeOrDay; limit?: number; cursor?: string };
    body: undefined;
    answer: ListWebhookEventsResult;
  };
  'GET /webhook-events/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: WebhookEventEnvelope;
  };
  'GET /outbound-messages': {
    path: Record<string, never>;
    query: { status?: Array<MessageStatus>; eventType?: Array<string>; applicationId?: Array<string>; endpointId?: Array<string>; errorType?: Array<"timeout" | "http_error" | "network" | "dns" | "tls" | "blocked" | "gone" | "circuit_open" | "secret_decryption_failed" | "disabled" | "cancelled" | "expired" | "filtered" | "schema_failed" | "transform_failed">; id?: Array<string>; responseStatus?: Array<string>; attemptsMin?: number; attemptsMax?: number; failedFrom?: TimeOrDay; failedTo?: TimeOrDay; where?: string; from?: TimeOrDay; to?: TimeOrDay; limit?: number; cursor?: string };
    body: undefined;
    answer: ListOutboundMessagesResult;
  };
  'GET /outbound-messages/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: OutboundMessageEnvelope;
  };
  'GET /outbound-messages/{id}/attempts': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: ListOutboundMessageAttemptsResult;
  };
  'POST /outbound-messages/{id}/replay': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: ResentMessageEnvelope;
  };
  'POST /outbound-messages/{id}/cancel': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: CancelOutboundMessageResult;
  };
  'POST /outbound-messages/cancel': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CancelOutboundMessagesByFilterBody;
    answer: CancelledByFilterEnvelope;
  };
  'POST /outbound-messages/cancel-bulk': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CancelOutboundMessagesBody;
    answer: CancelOutboundMessagesResult;
  };
  'POST /outbound-messages/dlq/retry-bulk': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: RetryDeadLettersBody;
    answer: RetryDeadLettersResult;
  };
  'GET /outbound-messages/dlq/stats': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: GetWebhookDeadLetterStatsResult;
  };
  'GET /replays': {
    path: Record<string, never>;
    query: { page?: number; pageSize?: number; phase?: "Planning" | "Running" | "Suspended" | "Succeeded" | "Failed" | "Cancelled" };
    body: undefined;
    answer: ListReplaysResult;
  };
  'GET /replays/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Replay;
  };
  'POST /replays': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateReplayBody;
    answer: Replay;
  };
  'PATCH /replays/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateReplayBody;
    answer: Replay;
  };
  'DELETE /replays/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
  'GET /explain/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Explanation;
  };
  'GET /manifests/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Manifest;
  };
  'GET /manifests/{id}/events': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: ListManifestEventsResult;
  };
  'POST /manifests/{id}/patch': {
    path: { id: string };
    query: Record<string, never>;
    body: GetManifestPatchBody;
    answer: ManifestPatch;
  };
  'POST /webhook-endpoints/{id}/rotate-secret': {
    path: { id: string };
    query: Record<string, never>;
    body: RotateWebhookEndpointSecretBody;
    answer: RotatedEndpointSecret;
  };
  'GET /analytics/dashboard': {
    path: Record<string, never>;
    query: { range?: "1h" | "24h" | "7d" | "30d"; tz?: string };
    body: undefined;
    answer: Dashboard;
  };
  'GET /analytics/series': {
    path: Record<string, never>;
    query: { from?: TimeOrDay; to?: TimeOrDay; step?: string; sourceId?: string; routeId?: string; destinationId?: string };
    body: undefined;
    answer: Series;
  };
  'GET /analytics': {
    path: Record<string, never>;
    query: { range?: "1h" | "24h" | "7d" | "30d" };
    body: undefined;
    answer: Analytics;
  };
  'GET /analytics/routes': {
    path: Record<string, never>;
    query: { range?: "1h" | "24h" | "7d" | "30d" };
    body: undefined;
    answer: GetRouteAnalyticsResult;
  };
  'GET /webhooks/analytics/series': {
    path: Record<string, never>;
    query: { from?: TimeOrDay; to?: TimeOrDay; step?: string; applicationId?: string; endpointId?: string };
    body: undefined;
    answer: SeriesEnvelope;
  };
  'GET /analytics/destinations/health': {
    path: Record<string, never>;
    query: { range?: "1h" | "24h" | "7d" | "30d" };
    body: undefined;
    answer: GetDestinationHealthResult;
  };
  'GET /events/{id}/payload': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
  'GET /sources': {
    path: Record<string, never>;
    query: { page?: number; pageSize?: number; enabled?: boolean; search?: string; id?: Array<string> };
    body: undefined;
    answer: ListSourcesResult;
  };
  'POST /sources': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateSourceBody;
    answer: Source;
  };
  'GET /sources/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Source;
  };
  'GET /sources/{id}/signature-failures': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: GetSourceSignatureFailuresResult;
  };
  'PATCH /sources/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateSourceBody;
    answer: Source;
  };
  'DELETE /sources/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
  'GET /routes': {
    path: Record<string, never>;
    query: { page?: number; pageSize?: number; enabled?: boolean; search?: string; sourceId?: string; destinationId?: string; id?: Array<string> };
    body: undefined;
    answer: ListRoutesResult;
  };
  'POST /routes': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateRouteBody;
    answer: Route;
  };
  'GET /routes/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Route;
  };
  'PATCH /routes/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateRouteBody;
    answer: Route;
  };
  'DELETE /routes/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
  'GET /routes/{id}/circuit-status': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: CircuitStatus;
  };
  'POST /routes/{id}/reset-circuit': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: ResetRouteCircuitResult;
  };
  'GET /destinations': {
    path: Record<string, never>;
    query: { page?: number; pageSize?: number; enabled?: boolean; search?: string; id?: Array<string> };
    body: undefined;
    answer: ListDestinationsResult;
  };
  'POST /destinations': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateDestinationBody;
    answer: Destination;
  };
  'GET /destinations/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Destination;
  };
  'PATCH /destinations/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateDestinationBody;
    answer: Destination;
  };
  'DELETE /destinations/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
  'POST /destinations/{id}/test': {
    path: { id: string };
    query: Record<string, never>;
    body: TestDestinationBody;
    answer: DestinationTestResult;
  };
  'GET /webhook-endpoints': {
    path: Record<string, never>;
    query: { applicationId?: string; isDisabled?: boolean; circuitState?: "closed" | "open" | "half_open"; limit?: number; cursor?: string };
    body: undefined;
    answer: ListWebhookEndpointsResult;
  };
  'GET /webhook-endpoints/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: WebhookEndpointEnvelope;
  };
  'POST /webhook-endpoints': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateWebhookEndpointBody;
    answer: CreateWebhookEndpointResult;
  };
  'PATCH /webhook-endpoints/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateWebhookEndpointBody;
    answer: WebhookEndpointEnvelope;
  };
  'DELETE /webhook-endpoints/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Success;
  };
  'GET /webhook-subscriptions': {
    path: Record<string, never>;
    query: { endpointId?: string; eventTypeId?: string; applicationId?: string; isEnabled?: boolean; limit?: number; cursor?: string };
    body: undefined;
    answer: ListWebhookSubscriptionsResult;
  };
  'POST /webhook-subscriptions': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateWebhookSubscriptionBody;
    answer: WebhookSubscriptionEnvelope;
  };
  'POST /webhook-subscriptions/test': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: TestWebhookSubscriptionBody;
    answer: TestWebhookSubscriptionResult;
  };
  'GET /webhook-subscriptions/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: WebhookSubscriptionEnvelope;
  };
  'PATCH /webhook-subscriptions/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateWebhookSubscriptionBody;
    answer: WebhookSubscriptionEnvelope;
  };
  'DELETE /webhook-subscriptions/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Success;
  };
  'POST /webhook-endpoints/{id}/test': {
    path: { id: string };
    query: Record<string, never>;
    body: TestWebhookEndpointBody;
    answer: WebhookEndpointTestEnvelope;
  };
  'POST /webhook-endpoints/{id}/reset-circuit': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: ResetWebhookEndpointCircuitResult;
  };
  'GET /webhook-applications': {
    path: Record<string, never>;
    query: { search?: string; isDisabled?: boolean; orderBy?: "created_at" | "name"; order?: "asc" | "desc"; limit?: number; cursor?: string };
    body: undefined;
    answer: ListWebhookApplicationsResult;
  };
  'POST /webhook-applications': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateWebhookApplicationBody;
    answer: WebhookApplicationEnvelope;
  };
  'GET /webhook-applications/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: WebhookApplicationEnvelope;
  };
  'PATCH /webhook-applications/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateWebhookApplicationBody;
    answer: WebhookApplicationEnvelope;
  };
  'DELETE /webhook-applications/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Success;
  };
  'GET /event-types': {
    path: Record<string, never>;
    query: { category?: string; isEnabled?: boolean; search?: string; limit?: number; cursor?: string };
    body: undefined;
    answer: ListEventTypesResult;
  };
  'POST /event-types': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateEventTypeBody;
    answer: EventTypeEnvelope;
  };
  'GET /event-types/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: EventTypeEnvelope;
  };
  'PATCH /event-types/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateEventTypeBody;
    answer: EventTypeEnvelope;
  };
  'DELETE /event-types/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Success;
  };
  'GET /filters': {
    path: Record<string, never>;
    query: { page?: number; pageSize?: number; search?: string; id?: Array<string> };
    body: undefined;
    answer: ListFiltersResult;
  };
  'POST /filters': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateFilterBody;
    answer: Filter;
  };
  'POST /filters/test': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: TestFilterBody;
    answer: TestFilterResult;
  };
  'GET /filters/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Filter;
  };
  'PATCH /filters/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateFilterBody;
    answer: Filter;
  };
  'DELETE /filters/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
  'GET /transforms': {
    path: Record<string, never>;
    query: { page?: number; pageSize?: number; search?: string; id?: Array<string> };
    body: undefined;
    answer: ListTransformsResult;
  };
  'POST /transforms': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateTransformBody;
    answer: Transform;
  };
  'POST /transforms/test': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: TestTransformBody;
    answer: TestTransformResult;
  };
  'GET /transforms/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Transform;
  };
  'PATCH /transforms/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateTransformBody;
    answer: Transform;
  };
  'DELETE /transforms/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
  'GET /schemas': {
    path: Record<string, never>;
    query: { page?: number; pageSize?: number; search?: string; id?: Array<string> };
    body: undefined;
    answer: ListPayloadSchemasResult;
  };
  'POST /schemas': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreatePayloadSchemaBody;
    answer: PayloadSchema;
  };
  'GET /schemas/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: PayloadSchema;
  };
  'PATCH /schemas/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdatePayloadSchemaBody;
    answer: PayloadSchema;
  };
  'DELETE /schemas/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
  'POST /schemas/test': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: TestSchemaBody;
    answer: TestSchemaResult;
  };
  'GET /cron': {
    path: Record<string, never>;
    query: { search?: string; isActive?: boolean; page?: number; pageSize?: number };
    body: undefined;
    answer: ListCronJobsResult;
  };
  'POST /cron': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateCronJobBody;
    answer: CreateCronJobResult;
  };
  'GET /cron/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: GetCronJobResult;
  };
  'GET /cron-schedule': {
    path: Record<string, never>;
    query: { cronJobId?: string; from?: TimeOrDay; to?: TimeOrDay; perJob?: number };
    body: undefined;
    answer: ListCronScheduleResult;
  };
  'PATCH /cron/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateCronJobBody;
    answer: Success;
  };
  'DELETE /cron/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: Success;
  };
  'GET /cron/{id}/executions': {
    path: { id: string };
    query: { limit?: number };
    body: undefined;
    answer: ListCronExecutionsResult;
  };
  'POST /cron/{id}/trigger': {
    path: { id: string };
    query: Record<string, never>;
    body: TriggerCronJobBody;
    answer: TriggerCronJobResult;
  };
  'GET /notification-channels': {
    path: Record<string, never>;
    query: { type?: "slack" | "teams" | "discord" | "pagerduty" | "email" | "webhook"; enabled?: boolean; page?: number; pageSize?: number; id?: Array<string> };
    body: undefined;
    answer: ListNotificationChannelsResult;
  };
  'POST /notification-channels': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateNotificationChannelBody;
    answer: NotificationChannel;
  };
  'GET /notification-channels/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: NotificationChannel;
  };
  'PATCH /notification-channels/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: UpdateNotificationChannelBody;
    answer: NotificationChannel;
  };
  'DELETE /notification-channels/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
  'POST /notification-channels/{id}/test': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: NotificationChannelTest;
  };
  'GET /notification-channels/{id}/alerts': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: ListChannelAlertsResult;
  };
  'GET /api-keys': {
    path: Record<string, never>;
    query: { page?: number; pageSize?: number };
    body: undefined;
    answer: ListApiKeysResult;
  };
  'POST /api-keys': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateApiKeyBody;
    answer: CreateApiKeyResult;
  };
  'DELETE /api-keys/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
  'GET /organizations': {
    path: Record<string, never>;
    query: { limit?: number; cursor?: string };
    body: undefined;
    answer: ListOrganizationsResult;
  };
  'GET /installation': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: Installation;
  };
  'GET /sessions': {
    path: Record<string, never>;
    query: { limit?: number; cursor?: string };
    body: undefined;
    answer: ListSessionsResult;
  };
  'GET /sessions/current': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: CurrentSession;
  };
  'POST /sessions': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CreateSessionBody;
    answer: NewSession;
  };
  'DELETE /sessions/{id}': {
    path: { id: string };
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
  'DELETE /sessions/current': {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: null;
  };
}

export type AddressesField = Array<string>;

export type AllowedMethodsField = Array<"POST" | "PUT" | "PATCH" | "GET" | "DELETE">;

export type Analytics = { range: string; summary: { totalEvents: number; totalDeliveries: number; successRate: SuccessRateField; avgLatency: AvgLatencyField; duplicatesDropped: number; eventsFiltered: number }; sources: Array<{ sourceId: string; name: string; eventsCount: number; duplicatesDropped: number; lastEventAt: LastEventAtField }>; destinations: Array<{ destinationId: string; name: string; deliveryCount: number; successRate: SuccessRateField; avgLatency: AvgLatencyField }>; statusBreakdown: { delivered: number; failed: number; pending: number; retrying: number; circuit_open: number } };

export type ApiKey = { id: IdField; organizationId: OrganizationIdField; name: NameField; prefix: string; keyPrefix: string; role: "admin" | "developer" | "viewer"; scopes: Array<"read" | "write" | "delete">; createdAt: CreatedAtField; lastUsedAt: string | null; expiresAt: string | null; createdBy: { name: string; keyId: string | null } | null };

export type Attempt = { attemptNumber: number; startedAt: StartedAtField; durationMs: number; responseStatus: ResponseStatusField; responseBody: ResponseBodyField; errorType: string | null; errorMessage: ErrorMessageField; payloadForm: "full" | "thin"; signatureScheme: AttemptSignatureScheme; detail?: AttemptDetail };

export type AttemptDetail = { requestHeaders: RequestHeadersField; responseHeaders: RequestHeadersField; headersTruncated: boolean; peerAddress: string | null; reusedConnection: boolean; requestBytes: number; responseBytes: number; phases: { dnsMs: DnsMsField; connectMs: DnsMsField; tlsMs: DnsMsField; firstByteMs: DnsMsField; totalMs: number } };

export type AttemptSignatureScheme = "hmac-sha256" | "ed25519" | "both" | null;

export type AttemptsMaxField = number;

export type AttemptsMinField = number;

export type AuthConfig = { username?: string; password?: string; token?: string; headerName?: string; key?: string; headerValue?: string };

export type AuthConfigField = AuthConfig | null;

export type AuthTypeField = "none" | "basic" | "bearer" | "api_key" | "custom_header";

export type AvgLatencyField = number | null;

export type AwaitsSigningSecretField = boolean;

export type BackoffTypeField = "exponential" | null;

export type BucketField = string;

export type CancelDeliveriesBody = { ids: ReplayDeliveriesBodyIds };

export type CancelDeliveriesByFilterBody = { filter: DeliveryCancelFilter; dryRun?: boolean; cursor?: CursorField };

export type CancelDeliveriesResult = { cancelled: number; cancelling: CancellingField; skipped: number; deliveries: Array<{ deliveryId: string; result: ResultField }> };

export type CancelDeliveryResult = { deliveryId: string; status: CancelDeliveryResultStatus; message: MessageField };

export type CancelDeliveryResultStatus = "cancelled" | "cancelling";

export type CancelOutboundMessageResult = { data: { messageId: string; status: CancelDeliveryResultStatus } };

export type CancelOutboundMessagesBody = { messageIds: MessageIdsField };

export type CancelOutboundMessagesByFilterBody = { filter: MessageCancelFilter; dryRun?: boolean; cursor?: CursorField };

export type CancelOutboundMessagesResult = { data: { cancelled: number; cancelling: CancellingField; skipped: number; messages: Array<{ messageId: string; result: ResultField }> } };

export type CancellationField = { at: string; by: string };

export type CancelledByFilter = { matched: number; cancelled: number; cancelling: CancellingField; skipped: number; scanned: number; upTo: string; dryRun: boolean; nextCursor: string | null };

export type CancelledByFilterEnvelope = { data: CancelledByFilter };

export type CancellingField = number;

export type CategoryField = string | null;

export type ChannelAlert = { id: string; type: "delivery.failed" | "delivery.succeeded" | "route.recovered" | "circuit.opened" | "circuit.closed"; isTest: boolean; route: { id: string; name: string } | null; destination: { id: string; name: string } | null; count: number; status: "delivered" | "retrying" | "failed"; attempts: number; lastAttemptAt: string; responseStatus: number | null; errorMessage: string | null };

export type ChannelTestFailure = { success: false; error: string; message: MessageField; detail?: AttemptDetail };

export type ChannelTestSuccess = { success: true; message: MessageField; detail?: AttemptDetail };

export type CircuitCooldownSecondsField = number;

export type CircuitFailureThresholdField = number;

export type CircuitProbeSuccessThresholdField = number;

export type CircuitStateField = "closed" | "open" | "half_open";

export type CircuitStatus = { circuitState: CircuitStatusCircuitState; failureCount: FailureCountField; lastFailureAt: LastFailureAtField; lastSuccessAt: LastSuccessAtField; openedAt: OpenedAtField; probeSuccessCount: number; failureThreshold: number; cooldownSeconds: number; probeSuccessThreshold: number; circuitOpenedAt: string | null; consecutiveFailures: number; probeAttempts: number; timeUntilProbeSeconds: number | null; destinations: Array<{ id: string; circuitState: CircuitStatusCircuitState; failureCount: FailureCountField; lastFailureAt: LastFailureAtField; lastSuccessAt: LastSuccessAtField; openedAt: OpenedAtField; probeSuccessCount: number }> };

export type CircuitStatusCircuitState = "closed" | "open" | "half_open";

export type CodeField = string;

export type ConditionsField = Array<FilterCondition>;

export type CreateApiKeyBody = { name: DisplayName; role?: "admin" | "developer" | "viewer"; scopes?: Array<"read" | "write" | "delete">; expiresInDays?: number; id?: unknown; organizationId?: unknown; prefix?: unknown; keyPrefix?: unknown; createdAt?: unknown; lastUsedAt?: unknown; expiresAt?: unknown; createdBy?: unknown };

export type CreateApiKeyResult = { apiKey: NewApiKey; key: string };

export type CreateCronJobBody = { name: DisplayName; slug?: NewSlug; description?: DescriptionField; cronExpression: CronExpressionField; timezone?: string; url: CronJobBodyUrl; method?: CronJobSettingsMethod; headers?: CronJobBodyHeaders; payload?: string | null; timeoutMs?: TimeoutMsField; isActive?: IsActiveField; useStaticIp?: UseStaticIpField; notifyOnFailure?: CronJobBodyNotifyOnFailure; notifyOnSuccess?: CronJobBodyNotifyOnFailure; notifyEmails?: null; groupId?: null; id?: unknown; organizationId?: unknown; lastRunAt?: unknown; createdAt?: unknown; updatedAt?: unknown; lastRunStatus?: unknown; nextRunAt?: unknown };

export type CreateCronJobResult = { cronJob: NewCronJob };

export type CreateDestinationBody = { name: DisplayName; slug?: NewSlug; type?: TypeField; description?: DescriptionField; enabled?: EnabledField; isActive?: boolean; url?: DestinationBodyUrl; method?: MethodField; headers?: DestinationBodyHeaders; headerTemplates?: DestinationBodyHeaderTemplates; authType?: AuthTypeField; authConfig?: AuthConfigField; timeoutMs?: TimeoutMsField; tls?: TlsField; useStaticIp?: UseStaticIpField; forwardQuery?: ForwardQueryField; forwardHeaders?: ForwardHeadersField; payloadForm?: PayloadFormField; config?: WarehouseConfig; fieldMapping?: FieldMappingField; ordered?: OrderedField; throttle?: ThrottleBody; retryPolicy?: RetryPolicyBody; expiresAfterSeconds?: ExpiresAfterSecondsField; signingSecret?: SigningSecretField; signatureScheme?: DestinationBodySignatureScheme; awaitsSigningSecret?: AwaitsSigningSecretField; id?: unknown; organizationId?: unknown; successRate?: unknown; avgLatency?: unknown; deliveriesCount?: unknown; deliveryCount?: unknown; lastDeliveryAt?: unknown; createdAt?: unknown; updatedAt?: unknown; publicKey?: unknown; previousPublicKeys?: unknown };

export type CreateEventTypeBody = { name: EventTypeBodyName; displayName?: DisplayNameField; description?: DescriptionField; category?: CategoryField; schema?: SchemaField; examplePayload?: string | null; documentationUrl?: HttpUrl | null; isEnabled?: boolean; isDeprecated?: boolean; deprecatedMessage?: DeprecatedMessageField; expiresAfterSeconds?: EventTypeExpiresAfterSeconds; defaultPriority?: null; isPublic?: false; id?: unknown; organizationId?: unknown; schemaVersion?: unknown; deprecatedAt?: unknown; subscriptionCount?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type CreateFilterBody = { name: DisplayName; slug?: NewSlug; description?: DescriptionField; conditions?: ConditionsField; logic?: LogicField; sharedWith?: SharedWith; sharedFrom?: SharedFrom; id?: unknown; organizationId?: unknown; routeCount?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type CreateNotificationChannelBody = { name: DisplayName; slug?: NewSlug; type: NotificationChannelItemType; config: SlackChannelConfig | TeamsChannelConfig | DiscordChannelConfig | PagerDutyChannelConfig | EmailChannelConfig | WebhookChannelConfig; enabled?: boolean; isActive?: boolean; id?: unknown; organizationId?: unknown; lastNotifiedAt?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type CreatePayloadSchemaBody = { name: DisplayName; slug?: NewSlug; description?: DescriptionField; jsonSchema?: JsonSchemaField; sharedWith?: SharedWith; sharedFrom?: SharedFrom; id?: unknown; organizationId?: unknown; version?: unknown; routeCount?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type CreateReplayBody = { name?: NewSlug; what: WhatField; filter?: ReplayFilter; ratePerSecond?: RatePerSecondField; toDestinationId?: ToDestinationIdField; stopAfterFailurePercent?: StopAfterFailurePercentField; ttlSecondsAfterFinished?: number | null; dryRun?: DryRunField; suspend?: boolean; id?: unknown; organizationId?: unknown; phase?: unknown; plan?: unknown; queued?: unknown; skipped?: unknown; skippedByReason?: unknown; delivered?: unknown; failed?: unknown; endedOtherwise?: unknown; waiting?: unknown; failure?: unknown; alreadyRan?: unknown; createdAt?: unknown; updatedAt?: unknown; startedAt?: unknown; completedAt?: unknown; estimatedCompletionAt?: unknown; slug?: unknown };

export type CreateRouteBody = { name: DisplayName; slug?: NewSlug; description?: DescriptionField; sourceId: SourceIdField; destinationIds?: Array<string>; destinationId?: string; filterId?: FilterIdField; filterConditions?: FilterConditionsField; filterLogic?: FilterLogicField; transformId?: string | null; schemaId?: SchemaIdField; priority?: PriorityField; failoverDestinationIds?: FailoverDestinationIdsField; failoverAfterAttempts?: FailoverAfterAttemptsField; circuitCooldownSeconds?: CircuitCooldownSecondsField; circuitFailureThreshold?: CircuitFailureThresholdField; circuitProbeSuccessThreshold?: CircuitProbeSuccessThresholdField; expectedResponse?: ExpectedResponseField; notifyOnFailure?: NotifyOnFailureField; notifyOnSuccess?: boolean; notifyOnRecovery?: NotifyOnRecoveryField; notifyEmails?: NotifyEmailsField; notificationChannelIds?: NotificationChannelIdsField; failureThreshold?: FailureThresholdField; enabled?: EnabledField; isActive?: boolean; id?: unknown; organizationId?: unknown; eventsRouted?: unknown; lastEventAt?: unknown; source?: unknown; destinations?: unknown; filter?: unknown; transform?: unknown; schema?: unknown; createdAt?: unknown; updatedAt?: unknown; circuitState?: unknown };

export type CreateSessionBody = { credential: string; organization?: string };

export type CreateSourceBody = { name: DisplayName; slug?: NewSlug; description?: DescriptionField; provider?: ProviderField; verification?: SourceVerification | null; signingSecret?: SourceBodySigningSecret; awaitsSigningSecret?: AwaitsSigningSecretField; rejectInvalidSignatures?: boolean; rateLimitPerMinute?: number | null; ipFilterMode?: IpFilterModeField; ipAllowlist?: IpAllowlistField; ipDenylist?: IpDenylistField; dedupStrategy?: DedupStrategyField; dedupHeader?: DedupHeaderField; dedupCustomHeader?: string | null; dedupEnabled?: boolean; encryptFields?: EncryptFieldsField; maskFields?: MaskFieldsField; transientMode?: false; dedupWindowHours?: DedupWindowHoursField; handshake?: HandshakeField; verifyToken?: VerifyTokenField; allowedMethods?: AllowedMethodsField; enabled?: boolean; isActive?: boolean; id?: unknown; organizationId?: unknown; ingestUrl?: unknown; eventsCount?: unknown; eventCount?: unknown; routeCount?: unknown; lastEventAt?: unknown; hasVerifyToken?: unknown; hasSigningSecret?: unknown; createdAt?: unknown; updatedAt?: unknown; signingSecretLast4?: unknown };

export type CreateTransformBody = { name: DisplayName; slug?: NewSlug; description?: DescriptionField; type?: TransformType; transformType?: "jsonata" | "javascript" | "liquid"; code?: CodeField; sharedWith?: SharedWith; sharedFrom?: SharedFrom; inputFormat?: InputFormatField; outputFormat?: OutputFormatField; id?: unknown; organizationId?: unknown; routeCount?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type CreateWebhookApplicationBody = { name: DisplayName; externalId?: ExternalIdField; metadata?: MetadataField; rateLimitPerSecond?: RateLimitPerSecondField; rateLimitPerMinute?: RateLimitPerMinuteField; rateLimitPerHour?: RateLimitPerHourField; isDisabled?: IsDisabledField; disabledReason?: DisabledReasonField; disableAfterHours?: DisableAfterHoursField; id?: unknown; organizationId?: unknown; totalEndpoints?: unknown; totalMessagesSent?: unknown; totalMessagesFailed?: unknown; lastEventAt?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type CreateWebhookEndpointBody = { applicationId: string; url: UrlField; description?: string | null; headers?: HeadersField; headerTemplates?: HeaderTemplatesField; timeoutSeconds?: TimeoutSecondsField; rateLimitPerSecond?: WebhookEndpointRateLimitPerSecond; rateLimitStrict?: RateLimitStrictField; ordered?: WebhookEndpointOrdered; retryDelays?: RetryDelaysField; expiresAfterSeconds?: WebhookEndpointExpiresAfterSeconds; successStatusCodes?: SuccessStatusCodesField; payloadForm?: PayloadFormField; signatureScheme?: SignatureSchemeField; circuitFailureThreshold?: CircuitFailureThresholdField; circuitSuccessThreshold?: CircuitProbeSuccessThresholdField; circuitCooldownSeconds?: CircuitCooldownSecondsField; isDisabled?: boolean; disabledReason?: DisabledReasonField; disableAfterHours?: DisableAfterHoursField; backoffType?: BackoffTypeField; ipAllowlistNotes?: null; useStaticIp?: false; id?: unknown; organizationId?: unknown; circuitState?: unknown; circuitFailureCount?: unknown; secretPrefix?: unknown; hasSecret?: unknown; secretVersion?: unknown; publicKey?: unknown; previousPublicKeys?: unknown; isVerified?: unknown; totalMessages?: unknown; totalSuccesses?: unknown; totalFailures?: unknown; avgResponseTimeMs?: unknown; lastSuccessAt?: unknown; lastFailureAt?: unknown; subscriptionCount?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type CreateWebhookEndpointResult = { data: NewWebhookEndpoint; warning: string };

export type CreateWebhookSubscriptionBody = { endpointId: string; eventTypeId: string; filterExpression?: FilterExpressionField; labelFilters?: LabelFiltersField; labelFilterMode?: LabelFilterModeField; transformId?: TransformIdField; isEnabled?: boolean; priorityOverride?: null; id?: unknown; organizationId?: unknown; lastFilterError?: unknown; endpointUrl?: unknown; eventTypeName?: unknown; eventTypeDisplayName?: unknown; applicationId?: unknown; applicationName?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type CreatedAtField = string;

export type CronExecution = { id: string; cron_job_id: string; status: "running" | "success" | "failed"; response_status: ResponseStatusField; response_body: string | null; error_message: string | null; latency_ms: number | null; started_at: StartedAtField; completed_at: string | null; detail?: AttemptDetail };

export type CronExpressionField = string;

export type CronJob = (CronJobItem) & ({ headers: string; payload: string | null });

export type CronJobBodyHeaders = Record<string, string> | string | null;

export type CronJobBodyNotifyOnFailure = false;

export type CronJobBodyUrl = string;

export type CronJobItem = (CronJobSettings) & (Resource) & ({ lastRunStatus: LastRunStatusField; nextRunAt: string | null });

export type CronJobSettings = { cronExpression: string; url: string; method: CronJobSettingsMethod; description: CronJobSettingsDescription; timezone: string; timeoutMs: TimeoutMsField; useStaticIp: UseStaticIpField; isActive: IsActiveField; lastRunAt: string | null };

export type CronJobSettingsDescription = string | null;

export type CronJobSettingsMethod = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";

export type CurrentSession = { id: string | null; how: "session" | "loopback" | "apiKey" | "token"; who: string; role: RoleField; scopes: Array<"read" | "write" | "delete">; organization: OrganizationField; expiresAt: string | null; csrfToken: string | null };

export type CursorField = string;

export type CursorPagination = { hasMore: boolean; nextCursor: string | null; scanned?: number };

export type Dashboard = { range: string; overview: DashboardTotals; latency: { percentiles: { p50: P50Field; p95: P50Field; p99: P50Field }; avg: P50Field }; sources: Array<{ id: string; name: string; slug: SlugField; event_count: number }>; destinations: Array<DashboardDestination>; routes: Array<DashboardRoute> };

export type DashboardDestination = (DashboardFigures) & ({ url: string | null });

export type DashboardFigures = { id: string; name: string; total_deliveries: number; successful: number; failed: number; success_rate: number; avg_latency: number | null };

export type DashboardRoute = (DashboardFigures) & ({ priority: number });

export type DashboardTotals = { total_events: number; successful_deliveries: number; failed_deliveries: number; avg_latency: number | null; source_count: number; destination_count: number };

export type DataField = Array<OutboundMessage>;

export type DedupHeaderField = string | null;

export type DedupStrategyField = "auto" | "provider_id" | "payload_hash" | "idempotency_key" | "none";

export type DedupWindowHoursField = number;

export type DelaysField = Array<number> | null;

export type DeliveriesField = Array<{ originalDeliveryId: string; newDeliveryId: string }>;

export type Delivery = { id: string; organizationId: OrganizationIdField; eventId: string; routeId: string; destinationId: string | null; status: "pending" | "processing" | "retrying" | "circuit_open" | "delivered" | "failed" | "filtered" | "schema_failed" | "transform_failed" | "dlq"; attempts: number; maxAttempts: number; nextAttemptAt: string | null; waitingFor: "route_disabled" | "destination_disabled" | "destination_suspended" | "destination_missing" | "transform_missing" | "endpoint_disabled" | "application_disabled" | "circuit_open" | "scheduled" | "retry" | "rate_limit" | "concurrency" | "application_rate_limit" | "batch" | "earlier_message" | "capacity" | "queue" | null; waitingUntil: WaitingUntilField; lastResponseStatus: number | null; lastErrorType: string | null; lastErrorMessage: string | null; deadLetterReason: string | null; failedOverFrom: string | null; replayedFrom: string | null; createdAt: CreatedAtField; completedAt: string | null; cancellation?: CancellationField; expiresAt: ExpiresAtField; attemptCount: number; nextRetryAt: string | null; responseStatus: number | null; errorMessage: string | null; deliveredAt: string | null };

export type DeliveryCancelFilter = { status?: Array<"pending" | "retrying" | "circuit_open" | "processing">; routeId?: OneOrSeveral; destinationId?: OneOrSeveral; id?: DeliveryCancelFilterId; eventId?: EventIdField; errorType?: ErrorTypeField; responseStatus?: DeliveryCancelFilterResponseStatus; attemptsMin?: AttemptsMinField; attemptsMax?: AttemptsMaxField; from?: FromField; to?: ToField; failedFrom?: FailedFromField; failedTo?: FailedToField; where?: WhereField };

export type DeliveryCancelFilterId = Array<string>;

export type DeliveryCancelFilterResponseStatus = Array<string>;

export type DeprecatedMessageField = string | null;

export type DescriptionField = string | null;

export type Destination = (DestinationItem) & ({ headers?: Record<string, string>; headerTemplates?: DestinationHeaderTemplates; authConfig?: AuthConfig | null; tls?: DestinationTls | null; forwardQuery?: ForwardQueryField; forwardHeaders?: Array<string> | null; payloadForm?: PayloadFormField; ordered?: OrderedField; fieldMapping?: Array<FieldMappingRule>; signingSecret?: string | null; signatureScheme?: DestinationSignatureScheme; publicKey?: PublicKeyField; previousPublicKeys?: PreviousPublicKeysField; awaitsSigningSecret?: AwaitsSigningSecretField });

export type DestinationBodyHeaderTemplates = Record<string, string> | null;

export type DestinationBodyHeaders = Record<string, string> | null;

export type DestinationBodySignatureScheme = "hmac-sha256" | "ed25519" | "both";

export type DestinationBodyUrl = string;

export type DestinationHeaderTemplates = Record<string, string>;

export type DestinationHealth = { destinationId: string; name: string; deliveryCount: number; successRate: SuccessRateField; avgLatency: AvgLatencyField; p50Latency: AvgLatencyField; p95Latency: AvgLatencyField; p99Latency: AvgLatencyField; recentFailures: Array<{ messageId: string; at: string; responseStatus: ResponseStatusField; errorMessage: string | null }>; healthScore: number };

export type DestinationItem = (Resource) & ({ type: TypeField; url: string; enabled: EnabledField; isActive: boolean; config?: WarehouseConfig; successRate: number | null; avgLatency: number | null; deliveriesCount: number; deliveryCount: number; lastDeliveryAt: string | null; description: CronJobSettingsDescription; method?: MethodField; authType?: AuthTypeField; timeoutMs?: TimeoutMsField; useStaticIp?: UseStaticIpField; throttle: Throttle; retryPolicy: RetryPolicy; expiresAfterSeconds: ExpiresAfterSecondsField });

export type DestinationSignatureScheme = "hmac-sha256" | "ed25519" | "both";

export type DestinationTestResult = HttpTestResult | WarehouseTestResult | TestFailure;

export type DestinationTls = { caBundle: string | null; clientCertificate: string | null; clientKey: string | null };

export type DestinationTlsBody = { caBundle?: string | null; clientCertificate?: string | null; clientKey?: string | null };

export type DisableAfterHoursField = number | null;

export type DisabledReasonField = string | null;

export type DiscordChannelConfig = { webhookUrl: DiscordChannelConfigWebhookUrl };

export type DiscordChannelConfigChange = { webhookUrl?: DiscordChannelConfigWebhookUrl };

export type DiscordChannelConfigWebhookUrl = string;

export type DisplayName = string;

export type DisplayNameField = string | null;

export type DnsMsField = number | null;

export type DryRunField = boolean;

export type EmailChannelConfig = { addresses: AddressesField };

export type EmailChannelConfigChange = { addresses?: AddressesField };

export type EnabledField = boolean;

export type EncryptFieldsField = Array<string> | null;

export type EndpointField = HttpsUrl;

export type EndpointHeader = { name: EndpointHeaderName; value: string };

export type EndpointHeaderName = string;

export type EndpointHeaderTemplate = { name: EndpointHeaderName; template: string };

export type ErrorMessageField = string | null;

export type ErrorTypeField = Array<"timeout" | "http_error" | "network" | "dns" | "tls" | "blocked" | "gone" | "circuit_open">;

export type ErrorsField = Array<{ path: string; message: string }>;

export type Event = (EventItem) & ({ query: string; headers: Record<string, string>; payload: unknown; payloadTruncated?: true; payloadEncoding: "json" | "text" | "base64" | null; deliveries: Array<Delivery>; unreached: { total: number; byReason: Record<string, number>; routes: Array<{ routeId: string; deliveryId: string; reason: "condition_false" | "no_condition_met" | "filter_error" | "filtered" | "schema_failed" | "transform_filtered" | "transform_failed" | "route_disabled" | "destination_disabled" | "destination_suspended" | "destination_missing" | "transform_missing"; conditions: Array<{ index: number; field?: string; operator?: string; expected?: unknown; actual?: unknown }>; error: string | null; changedSince: boolean }> } });

export type EventIdField = string;

export type EventItem = { id: string; organizationId: OrganizationIdField; sourceId: string; source: string; sourceSlug: string; sourceName: string; receivedAt: string; method: string; contentType: string; size: number; signatureValid: boolean | null; duplicateOf: string | null; deliverAt: string | null; status: "pending" | "delivered" | "partial" | "failed" | "filtered" | "no_routes"; deliveryCount: number };

export type EventType = { id: IdField; organizationId: OrganizationIdField; name: string; displayName: string | null; description: CronJobSettingsDescription; category: string | null; schema: string | null; schemaVersion: number; examplePayload: string | null; documentationUrl: string | null; isEnabled: boolean; isDeprecated: boolean; deprecatedAt: string | null; deprecatedMessage: string | null; expiresAfterSeconds: EventTypeExpiresAfterSeconds; subscriptionCount: number; createdAt: CreatedAtField; updatedAt: UpdatedAtField };

export type EventTypeBodyName = string;

export type EventTypeEnvelope = { data: EventType };

export type EventTypeExpiresAfterSeconds = number | null;

export type ExpectedResponse = { statusCodes?: Array<number>; bodyContains?: string };

export type ExpectedResponseBody = { statusCodes?: Array<number>; bodyContains?: string };

export type ExpectedResponseField = ExpectedResponseBody | null;

export type ExpiresAfterSecondsField = number | null;

export type ExpiresAtField = string | null;

export type Explanation = { id: string; kind: string; summary: string; state: string; story: Array<ExplanationStep>; waitsFor: ExplanationWait | null; next: ExplanationNext | null; advice: Array<ExplanationAdvice> };

export type ExplanationAdvice = { text: string; command?: string };

export type ExplanationNext = { what: "attempt" | "probe" | "run"; at: string | null; text: string };

export type ExplanationStep = { at: string | null; what: string; text: string; data: Record<string, unknown> };

export type ExplanationWait = { reason: string; until: WaitingUntilField; text: string };

export type ExportedWebhookEvent = (WebhookEventItem) & ({ payload: unknown });

export type ExternalIdField = string | null;

export type FailedFromField = TimeOrDay;

export type FailedToField = TimeOrDay;

export type FailingEndpoint = { endpointId: string; endpointUrl: string | null; count: number };

export type FailoverAfterAttemptsField = number;

export type FailoverDestinationIdsField = Array<string>;

export type FailureCountField = number;

export type FailureThresholdField = number;

export type FieldMappingField = Array<FieldMappingRule> | null;

export type FieldMappingRule = { source: string; target: string; type: "string" | "number" | "boolean" | "timestamp" | "json"; default?: string };

export type FieldOwner = { path: string; pointer: string | null; field: string | null; managers: Array<string> };

export type Filter = (FilterItem) & ({ updatedAt: UpdatedAtField });

export type FilterCondition = { field: string; operator: "equals" | "not_equals" | "contains" | "not_contains" | "starts_with" | "ends_with" | "matches" | "gt" | "gte" | "lt" | "lte" | "exists" | "not_exists" | "in" | "not_in"; value?: unknown };

export type FilterConditionsField = Array<FilterCondition> | null;

export type FilterExpressionField = string | null;

export type FilterIdField = string | null;

export type FilterItem = { id: IdField; organizationId: OrganizationIdField; name: NameField; slug: SlugField; description: CronJobSettingsDescription; conditions: Array<FilterCondition>; logic: LogicField; sharedWith: SharedWith; sharedFrom: SharedFrom; routeCount: number; createdAt: CreatedAtField };

export type FilterLogicField = "AND" | "OR";

export type ForwardHeadersField = Array<string> | null;

export type ForwardQueryField = boolean;

export type FromField = TimeOrDay;

export type GetCronJobResult = { cronJob: CronJob };

export type GetDeadLetterStatsResult = { total: number; byReason: Record<string, number>; topFailingDestinations: Array<{ destinationId: string; count: number }> };

export type GetDeliveryResult = (Delivery) & ({ attemptDetails: Array<Attempt> });

export type GetDestinationHealthResult = { range: string; destinations: Array<DestinationHealth> };

export type GetManifestPatchBody = { change: Record<string, unknown> };

export type GetRouteAnalyticsResult = { range: string; routes: Array<RouteAnalytics> };

export type GetSourceSignatureFailuresResult = { data: Array<SignatureFailure>; requests: number; since: string | null };

export type GetWebhookDeadLetterStatsResult = { data: { total: number; byReason: Record<string, number>; topFailingEndpoints: Array<FailingEndpoint>; byEndpoint: Array<FailingEndpoint> } };

export type HandshakeField = "hub_challenge" | "validation_token" | "challenge" | "crc_token" | "cloudevents" | null;

export type HeaderField = string;

export type HeaderTemplatesField = Array<EndpointHeaderTemplate>;

export type HeadersField = Array<EndpointHeader>;

export type HttpTestResult = { success: true; statusCode: number; latency: number; responseBody: string; message: MessageField; detail?: AttemptDetail; status?: number | null; latencyMs?: number };

export type HttpUrl = string;

export type HttpsUrl = string;

export type IdField = string;

export type IdentityField = "keys" | "platform";

export type InputFormatField = "json";

export type Installation = { version: string; mode: "standalone" | "cluster"; layout: number; versions: Array<{ version: string | null; workers: number | null; processes: Array<{ role: string; processes: number }> | null }>; pools: Array<{ name: string; workers: number; slots: number; replicas: { wanted: number; ready: number } | null; conditions: Array<{ type: string; status: "True" | "False" | "Unknown"; reason: string; message: string; lastTransitionTime: string }> | null }> | null; workers: { total: number; data: Array<{ id: string; pool: string; isAlive: boolean; slots: number | null; version: string | null; lastSeenAt: string | null }> } | null; processes: { total: number; data: Array<{ role: string; address: string; layout: number; version: string | null; connectedSeconds: number }> } | null; shards: { total: number; data: Array<{ shard: number; unfinished: number; retriesWaiting: number; scheduled: number; processing: number; deadLetters: number; outboxEntries: number }> } | null; redis: { mode: "single" | "sentinel" | "cluster"; servers: Array<{ address: string; version: string; usedBytes: number; limitBytes: number | null; evictionPolicy: string; appendOnly: boolean; snapshotAt: string | null; replicas: number }> } | null; unread: Array<{ part: "redis" | "pools" | "workers" | "processes" | "resources" | "shards"; reason: string }>; warnings: Array<{ part: "redis" | "pools" | "workers" | "processes" | "resources" | "shards"; message: string; action: string }> };

export type IpAllowlistField = Array<string>;

export type IpDenylistField = Array<string>;

export type IpFilterModeField = "none" | "allowlist" | "denylist" | "both";

export type IsActiveField = boolean;

export type IsDisabledField = boolean;

export type JsonSchemaField = Record<string, unknown> | string;

export type JudgedCondition = { field: string; operator: string; matches: boolean };

export type LabelFilterModeField = "all" | "any";

export type LabelFiltersField = Record<string, string | Array<string>>;

export type LabelsField = Record<string, string | number | boolean>;

export type LastEventAtField = string | null;

export type LastFailureAtField = string | null;

export type LastRunStatusField = "running" | "success" | "failed" | null;

export type LastSuccessAtField = string | null;

export type ListApiKeysResult = { data: Array<ApiKey>; pagination: Pagination };

export type ListChannelAlertsResult = { data: Array<ChannelAlert> };

export type ListCronExecutionsResult = { executions: Array<CronExecution> };

export type ListCronJobsResult = { cronJobs: Array<CronJobItem> };

export type ListCronScheduleResult = { from: string; to: string; jobs: Array<ScheduledCronJob> };

export type ListDeliveriesResult = { data: Array<Delivery>; pagination: CursorPagination };

export type ListDestinationsResult = { data: Array<DestinationItem>; pagination: Pagination };

export type ListEventTypesResult = { data: Array<EventType>; pagination: CursorPagination };

export type ListEventsResult = { data: Array<EventItem>; pagination: CursorPagination };

export type ListFiltersResult = { data: Array<FilterItem>; pagination: Pagination };

export type ListManifestEventsResult = { isKept: boolean; data: Array<ObjectEvent> };

export type ListNotificationChannelsResult = { data: Array<NotificationChannelItem> };

export type ListOrganizationsResult = { data: Array<Organization>; pagination: CursorPagination };

export type ListOutboundMessageAttemptsResult = { data: Array<OutboundMessageAttempt> };

export type ListOutboundMessagesResult = { data: DataField; pagination: CursorPagination };

export type ListPayloadSchemasResult = { data: Array<PayloadSchema>; pagination: Pagination };

export type ListReplaysResult = { data: Array<Replay>; pagination: Pagination };

export type ListRoutesResult = { data: Array<RouteItem>; pagination: Pagination };

export type ListSessionsResult = { data: Array<Session>; pagination: CursorPagination };

export type ListSourcesResult = { data: Array<SourceItem>; pagination: Pagination };

export type ListTransformsResult = { data: Array<Transform>; pagination: Pagination };

export type ListWebhookApplicationsResult = { data: Array<WebhookApplication>; pagination: CursorPagination };

export type ListWebhookEndpointsResult = { data: Array<WebhookEndpoint>; pagination: CursorPagination };

export type ListWebhookEventsResult = { data: Array<WebhookEventItem>; pagination: CursorPagination };

export type ListWebhookSubscriptionsResult = { data: Array<WebhookSubscription>; pagination: CursorPagination };

export type LogicField = "AND" | "OR";

export type Manifest = { id: string; manifest: { apiVersion: "posthorn.dev/v1alpha1"; kind: string; metadata: { name: string; namespace: string; labels?: Record<string, string>; annotations?: Record<string, string> }; spec: Record<string, unknown> }; isLocked: boolean; owners: Array<FieldOwner>; conditions: Array<{ type: string; status: "True" | "False" | "Unknown"; reason: string; message: string; lastTransitionTime: string }> };

export type ManifestPatch = { patch: { apiVersion: "posthorn.dev/v1alpha1"; kind: string; metadata: { name: string; namespace: string }; spec: Record<string, unknown> }; secrets: Array<{ name: string; keys: Array<string> }> };

export type MaskFieldsField = Array<string> | null;

export type MaxDelayField = number;

export type MessageCancelFilter = { status?: Array<"pending" | "failed" | "processing">; eventType?: OneOrSeveral; applicationId?: OneOrSeveral; endpointId?: OneOrSeveral; id?: DeliveryCancelFilterId; eventId?: EventIdField; errorType?: ErrorTypeField; responseStatus?: DeliveryCancelFilterResponseStatus; attemptsMin?: AttemptsMinField; attemptsMax?: AttemptsMaxField; from?: FromField; to?: ToField; failedFrom?: FailedFromField; failedTo?: FailedToField; where?: WhereField };

export type MessageField = string;

export type MessageIdsField = Array<string>;

export type MessageStatus = "pending" | "processing" | "success" | "failed" | "exhausted" | "dlq";

export type MetadataField = Record<string, unknown>;

export type MethodField = "POST" | "PUT" | "PATCH";

export type ModeField = "off" | "rate" | "concurrency";

export type NameField = string;

export type NewApiKey = (ApiKey) & ({ key: string });

export type NewCronJob = (CronJobSettings) & (Resource) & ({ lastRunStatus: LastRunStatusField; nextRunAt: string | null; headers: string; payload: string | null });

export type NewSession = { id: string; organization: OrganizationField; role: RoleField; who: string; createdAt: StartedAtField; expiresAt: string; csrfToken: string };

export type NewSlug = string;

export type NewWebhookEndpoint = (WebhookEndpoint) & ({ secret: string });

export type NotificationChannel = (NotificationChannelItem) & ({ config: ShownIncomingWebhookConfig | ShownPagerDutyConfig | ShownEmailConfig | ShownWebhookConfig; createdAt: CreatedAtField; updatedAt: UpdatedAtField });

export type NotificationChannelIdsField = Array<string> | null;

export type NotificationChannelItem = { id: IdField; organizationId: OrganizationIdField; name: NameField; slug: SlugField; type: NotificationChannelItemType; enabled: boolean; isActive: boolean; lastNotifiedAt: string | null };

export type NotificationChannelItemType = "slack" | "teams" | "discord" | "pagerduty" | "email" | "webhook";

export type NotificationChannelTest = ChannelTestSuccess | ChannelTestFailure;

export type NotifyEmailsField = string | null;

export type NotifyOnFailureField = boolean;

export type NotifyOnRecoveryField = boolean;

export type ObjectEvent = { type: string; reason: string; message: string; count: number; firstAt: string | null; lastAt: string | null; source: string };

export type ObjectName = string;

export type OneOrSeveral = string | Array<string>;

export type OpenedAtField = string | null;

export type OrderedField = boolean;

export type Organization = { id: OrganizationIdField; name: string; slug: string; role: "admin" | "developer" | "viewer" };

export type OrganizationField = { id: string; slug: string };

export type OrganizationIdField = string;

export type OutboundMessage = { id: string; organizationId: OrganizationIdField; eventId: string; eventType: string | null; applicationId: string; applicationName: string | null; endpointId: string; endpointUrl: string | null; subscriptionId: string | null; status: MessageStatus; attempts: number; maxAttempts: number; nextAttemptAt: string | null; waitingFor: "endpoint_disabled" | "application_disabled" | "circuit_open" | "scheduled" | "retry" | "rate_limit" | "application_rate_limit" | "earlier_message" | "capacity" | "queue" | null; waitingUntil: WaitingUntilField; lastResponseStatus: number | null; lastErrorType: string | null; lastErrorMessage: string | null; labels: Record<string, string>; replayedFrom: string | null; dlqReason: "max_retries_exceeded" | "circuit_breaker_exhausted" | "endpoint_not_found" | "payload_not_found" | "secret_decryption_failed" | "queue_limit_exceeded" | null; dlqMovedAt: string | null; dlqRetryCount: number; dlqLastRetryAt: string | null; createdAt: CreatedAtField; completedAt: string | null; cancellation?: CancellationField; expiresAt: ExpiresAtField };

export type OutboundMessageAttempt = { id: string; messageId: string; attemptNumber: number; status: StatusField; responseStatus: ResponseStatusField; responseTimeMs: number; responseBody: ResponseBodyField; errorType: string | null; errorMessage: ErrorMessageField; createdAt: StartedAtField; completedAt: string; payloadForm: "full" | "thin"; signatureScheme: AttemptSignatureScheme; detail?: AttemptDetail };

export type OutboundMessageEnvelope = { data: OutboundMessage };

export type OutputFormatField = "json";

export type P50Field = number;

export type PagerDutyChannelConfig = { routingKey: RoutingKeyField; severity?: SeverityField };

export type PagerDutyChannelConfigChange = { routingKey?: RoutingKeyField; severity?: SeverityField };

export type Pagination = { total: number; page: number; pageSize: number };

export type PayloadField = unknown;

export type PayloadFormField = "full" | "thin";

export type PayloadSchema = (Resource) & ({ description: CronJobSettingsDescription; jsonSchema: Record<string, unknown>; sharedWith: SharedWith; sharedFrom: SharedFrom; version: number; routeCount: number });

export type PrefixField = string;

export type PreviousPublicKey = { publicKey: string; expiresAt: string | null };

export type PreviousPublicKeysField = Array<PreviousPublicKey>;

export type PriorityField = number;

export type ProviderField = "generic" | "custom" | "github" | "gitlab" | "stripe" | "shopify" | "slack" | "twilio" | "paddle" | "standard-webhooks" | "svix" | "intercom" | "sentry" | "bitbucket" | "posthorn";

export type PublicKeyField = string | null;

export type QueryField = string;

export type QueueLimitField = number | null;

export type RateLimitField = number | null;

export type RateLimitPerHourField = number;

export type RateLimitPerMinuteField = number;

export type RateLimitPerSecondField = number;

export type RateLimitStrictField = boolean;

export type RatePerSecondField = number;

export type RateUnitField = "second" | "minute" | "hour" | null;

export type RegionField = string;

export type Related = { id: string; name: string };

export type Replay = (Resource) & ({ what: WhatField; filter: ReplayFilter; ratePerSecond: RatePerSecondField; toDestinationId: string | null; stopAfterFailurePercent: number | null; ttlSecondsAfterFinished: number | null; dryRun: DryRunField; suspend: boolean; cancel: boolean; phase: "Planning" | "Running" | "Suspended" | "Succeeded" | "Failed" | "Cancelled"; plan: ReplayPlan | null; queued: number; skipped: number; skippedByReason: Record<string, number>; delivered: number; failed: number; endedOtherwise: number; waiting: ReplayWait | null; failure: ReplayFailure | null; alreadyRan: boolean; startedAt: string | null; completedAt: string | null; estimatedCompletionAt: string | null });

export type ReplayDeliveriesBody = { ids?: ReplayDeliveriesBodyIds; deliveryIds?: Array<string> };

export type ReplayDeliveriesBodyIds = Array<string>;

export type ReplayDeliveriesResult = { message: MessageField; queued: number; skipped: number; deliveries: DeliveriesField };

export type ReplayDeliveryResult = { originalDeliveryId: string; newDeliveryId: string; status: "queued"; deliveryId: string; message: MessageField };

export type ReplayFailure = { reason: string; message: string };

export type ReplayFilter = { id?: DeliveryCancelFilterId; status?: Array<"delivered" | "failed" | "filtered" | "transform_failed" | "dlq" | "success" | "exhausted" | "no_routes">; sourceId?: OneOrSeveral; routeId?: OneOrSeveral; destinationId?: OneOrSeveral; applicationId?: OneOrSeveral; endpointId?: OneOrSeveral; eventType?: OneOrSeveral; errorType?: Array<string>; responseStatus?: DeliveryCancelFilterResponseStatus; attemptsMin?: AttemptsMinField; attemptsMax?: AttemptsMaxField; from?: FromField; to?: TimeOrDay; failedFrom?: FailedFromField; failedTo?: FailedToField; where?: WhereField };

export type ReplayPlan = { candidates: number; isEstimate: boolean; bytes: number; targets: number; oldest: string | null; estimatedSeconds: number };

export type ReplayWait = { reason: string; message: string; since: StartedAtField };

export type RequestHeadersField = Record<string, string> | null;

export type ResentMessage = { originalMessageId: string; newMessageId: string; status: "queued" };

export type ResentMessageEnvelope = { data: ResentMessage };

export type ResetRouteCircuitResult = { message: string; circuitState: "closed" | "open" | "half_open" };

export type ResetWebhookEndpointCircuitResult = { success: true; circuitState: "closed" };

export type Resource = { id: IdField; organizationId: OrganizationIdField; name: NameField; slug: SlugField; createdAt: CreatedAtField; updatedAt: UpdatedAtField };

export type ResponseBodyField = string | null;

export type ResponseStatusField = number | null;

export type ResultField = "cancelled" | "cancelling" | "ended" | "moving" | "not_found";

export type RetryDeadLettersBody = { messageIds: MessageIdsField };

export type RetryDeadLettersResult = { data: { queued: number; skipped: number; messages: Array<{ originalMessageId: string; newMessageId: string }> } };

export type RetryDelaysField = Array<number> | null;

export type RetryPolicy = { maxRetries: number; initialDelay: number; maxDelay: number; backoffMultiplier: number; delays: Array<number> | null };

export type RetryPolicyBody = { maxRetries?: number; initialDelay?: number; maxDelay?: MaxDelayField; backoffMultiplier?: number; delays?: DelaysField };

export type RetryPolicyBodyChange = { maxRetries?: number; initialDelay?: number; maxDelay?: MaxDelayField; backoffMultiplier?: number; delays?: DelaysField };

export type RoleField = "admin" | "developer" | "viewer";

export type RotateWebhookEndpointSecretBody = { gracePeriodSeconds?: number };

export type RotatedEndpointSecret = { secret: string; signatureScheme: "hmac-sha256" | "ed25519" | "both"; publicKey: string | null; previousPublicKey: string | null; previousSecretExpiresAt: string | null; secretVersion: number };

export type Route = (RouteItem) & ({ circuitState: "closed" | "open" | "half_open" });

export type RouteAnalytics = { routeId: string; name: string; eventsRouted: number; delivered: number; failed: number; filtered: number; pending: number; successRate: SuccessRateField; avgLatency: AvgLatencyField; p50Latency: AvgLatencyField; p95Latency: AvgLatencyField; p99Latency: AvgLatencyField; circuitState: "closed" | "open" | "half_open"; lastEventAt: LastEventAtField };

export type RouteItem = (RouteSettings) & (Resource) & ({ sourceId: string; destinationIds: Array<string>; destinationId: string; enabled: EnabledField; isActive: boolean; eventsRouted: number; lastEventAt: string | null; source: Related; destinations: Array<Related>; description: CronJobSettingsDescription; filterId: string | null; transformId: string | null; schemaId: string | null; priority: PriorityField; failoverDestinationIds: Array<string>; failoverAfterAttempts: FailoverAfterAttemptsField; filter: Related | null; transform: Related | null; schema: Related | null; notifyEmails: string | null; notificationChannelIds: Array<string> | null });

export type RouteSettings = { filterConditions: Array<FilterCondition> | null; filterLogic: "AND" | "OR"; circuitCooldownSeconds: number; circuitFailureThreshold: number; circuitProbeSuccessThreshold: number; expectedResponse: ExpectedResponse | null; notifyOnFailure: NotifyOnFailureField; notifyOnSuccess: boolean; notifyOnRecovery: NotifyOnRecoveryField; failureThreshold: FailureThresholdField };

export type RoutingKeyField = string;

export type ScheduledCronJob = { id: string; name: string; cronExpression: string; timezone: string; runs: Array<string>; hasMore: boolean };

export type SchemaField = string | null;

export type SchemaIdField = string | null;

export type SecretField = SigningSecrets | null;

export type SendEventBody = { eventType: string; payload: unknown; applicationId?: string; endpointId?: string; endpointIds?: Array<string>; priority?: number; deliverAt?: string; delaySeconds?: number; expiresAfterSeconds?: number; idempotencyKey?: string; labels?: LabelsField; metadata?: Record<string, unknown> };

export type SentEvent = { eventId: string; messagesQueued: number; endpoints: Array<TargetedEndpoint> };

export type SentEventEnvelope = { data: SentEvent };

export type Series = { from: string; to: string; step: string; now: { backlog: number | null; oldestAgeMs: number | null; scheduled: number | null } | null; total: SeriesTotal; points: Array<SeriesPoint> };

export type SeriesEnvelope = { data: Series };

export type SeriesPoint = (SeriesTotal) & ({ at: string });

export type SeriesTotal = { events: number | null; duplicates: number | null; filtered: number | null; delivered: number | null; failed: number | null; movedAway: number | null; retried: number | null; attempts: number | null; circuitsOpened: number | null; backlog: number | null; oldestAgeMs: number | null; avgLatency: AvgLatencyField; p50Latency: AvgLatencyField; p95Latency: AvgLatencyField; p99Latency: AvgLatencyField };

export type Session = { id: string; organizationId: OrganizationIdField; who: string; isCurrent: boolean; createdAt: StartedAtField; lastSeenAt: string; expiresAt: string; address: string; userAgent: string };

export type SeverityField = "critical" | "error" | "warning" | "info";

export type SharedFrom = { organization: ObjectName; slug: ObjectName } | null;

export type SharedWith = Array<ObjectName>;

export type ShownEmailConfig = { addresses: Array<string> };

export type ShownIncomingWebhookConfig = { webhookUrl: string };

export type ShownPagerDutyConfig = { routingKey: string; severity: SeverityField };

export type ShownWebhookConfig = { url: string; headers: Record<string, string>; secret: string | null };

export type SignatureFailure = { reason: "header_missing" | "header_malformed" | "timestamp_malformed" | "timestamp_outside_tolerance" | "body_not_covered" | "body_digest_mismatch" | "body_is_handshake_token" | "no_secret_matches" | "no_secret" | "secret_unreadable"; message: MessageField; advice: string; header: string | null; secondsBehind: number | null; refused: boolean; address: string; userAgent: string | null; requests: number; firstAt: string; lastAt: string };

export type SignatureSchemeField = "hmac-sha256" | "ed25519" | "both";

export type SigningKeys = string;

export type SigningSecretField = SigningKeys | null;

export type SigningSecrets = string;

export type SlackChannelConfig = { webhookUrl: WebhookUrlField };

export type SlackChannelConfigChange = { webhookUrl?: WebhookUrlField };

export type Slug = string;

export type SlugField = string;

export type Source = (SourceItem) & ({ signingSecretLast4: string | null });

export type SourceBodySigningSecret = string | null;

export type SourceIdField = string;

export type SourceItem = (SourceSettings) & (Resource) & ({ description: CronJobSettingsDescription; enabled: boolean; isActive: boolean; ingestUrl: string; eventsCount: number; eventCount: number; routeCount: number; lastEventAt: LastEventAtField; hasVerifyToken: boolean; hasSigningSecret: boolean; awaitsSigningSecret: AwaitsSigningSecretField });

export type SourceSettings = { provider: ProviderField; verification: SourceVerification | null; allowedMethods: AllowedMethodsField; handshake: "hub_challenge" | "validation_token" | "challenge" | "crc_token" | "cloudevents" | null; rejectInvalidSignatures: boolean; rateLimitPerMinute: number | null; ipFilterMode: IpFilterModeField; ipAllowlist: Array<string>; ipDenylist: Array<string>; dedupStrategy: DedupStrategyField; dedupHeader: string | null; dedupCustomHeader: string | null; dedupEnabled: boolean; dedupWindowHours: DedupWindowHoursField };

export type SourceVerification = { algorithm?: "sha1" | "sha256" | "sha512"; header: HeaderField; encoding?: "hex" | "base64"; prefix?: PrefixField };

export type SourceVerificationChange = { algorithm?: "sha1" | "sha256" | "sha512"; header: HeaderField; encoding?: "hex" | "base64"; prefix?: PrefixField };

export type StartedAtField = string;

export type StatusField = "success" | "failed";

export type StopAfterFailurePercentField = number | null;

export type StrictField = boolean | null;

export type Success = { success: true };

export type SuccessRateField = number | null;

export type SuccessStatusCodesField = Array<number | string> | null;

export type TargetedEndpoint = { id: string; url: string };

export type TeamsChannelConfig = { webhookUrl: string };

export type TeamsChannelConfigChange = { webhookUrl?: string };

export type TestDestinationBody = { payload?: Record<string, unknown> };

export type TestFailure = { success: false; statusCode: number | null; latency: number; error: string; message: MessageField; detail?: AttemptDetail; status?: number | null; latencyMs?: number };

export type TestFilterBody = { filterId?: string; conditions?: ConditionsField; logic?: LogicField; payload?: PayloadField; headers?: TestFilterBodyHeaders; query?: QueryField };

export type TestFilterBodyHeaders = Record<string, string>;

export type TestFilterResult = { success: true; matches: boolean; conditions: Array<JudgedCondition>; results: Array<JudgedCondition>; logic: LogicField };

export type TestSchemaBody = { jsonSchema: JsonSchemaField; payload: unknown };

export type TestSchemaResult = { valid: boolean; errors: ErrorsField };

export type TestTransformBody = { transformId?: string; type?: "jsonata" | "javascript" | "liquid"; transformType?: "jsonata" | "javascript" | "liquid"; inputFormat?: InputFormatField; outputFormat?: OutputFormatField; code?: CodeField; source?: string; payload?: PayloadField; headers?: TestFilterBodyHeaders; query?: QueryField };

export type TestTransformResult = TransformOutput | TransformFailure;

export type TestWebhookEndpointBody = { eventType?: string; payload?: unknown };

export type TestWebhookSubscriptionBody = { filterExpression?: FilterExpressionField; labelFilters?: LabelFiltersField; labelFilterMode?: LabelFilterModeField; eventType?: string; payload?: PayloadField; labels?: LabelsField; metadata?: Record<string, unknown> };

export type TestWebhookSubscriptionResult = { success: true; matches: boolean; error: string | null; labels: Array<{ label: string; expected: string | Array<string>; actual: string | null }> };

export type Throttle = { mode: "off" | "rate" | "concurrency"; rateLimit: number | null; rateUnit: "second" | "minute" | "hour" | null; strict: boolean | null; maxConcurrency: number | null; queueLimit: number | null };

export type ThrottleBody = { mode?: ModeField; rateLimit?: RateLimitField; rateUnit?: RateUnitField; strict?: StrictField; maxConcurrency?: number | null; queueLimit?: QueueLimitField };

export type ThrottleBodyChange = { mode?: ModeField; rateLimit?: RateLimitField; rateUnit?: RateUnitField; strict?: StrictField; maxConcurrency?: number | null; queueLimit?: QueueLimitField };

export type TimeOrDay = string;

export type TimeoutMsField = number;

export type TimeoutSecondsField = number;

export type TlsField = DestinationTlsBody | null;

export type ToDestinationIdField = string | null;

export type ToField = TimeOrDay;

export type TotalMessagesField = number;

export type TotalMessagesSentField = number;

export type Transform = (Resource) & ({ description: CronJobSettingsDescription; type: TransformType; transformType: "jsonata" | "javascript" | "liquid"; code: string; sharedWith: SharedWith; sharedFrom: SharedFrom; inputFormat: "json"; outputFormat: "json"; routeCount: number });

export type TransformFailure = { success: false; error: string };

export type TransformIdField = string | null;

export type TransformOutput = { success: true; output: unknown; result: unknown; contentType: string | null; warning?: string };

export type TransformType = "jsonata" | "javascript" | "liquid";

export type TriggerCronJobBody = Record<string, unknown>;

export type TriggerCronJobResult = { execution: TriggeredExecution };

export type TriggeredExecution = { id: string; status: StatusField; responseStatus: number | null; latencyMs: number; error?: string };

export type TypeField = "http" | "s3" | "r2" | "gcs" | "azure_blob";

export type UpdateCronJobBody = { name?: DisplayName; slug?: Slug; description?: DescriptionField; cronExpression?: CronExpressionField; timezone?: string; url?: CronJobBodyUrl; method?: CronJobSettingsMethod; headers?: CronJobBodyHeaders; payload?: string | null; timeoutMs?: TimeoutMsField; isActive?: IsActiveField; useStaticIp?: UseStaticIpField; notifyOnFailure?: CronJobBodyNotifyOnFailure; notifyOnSuccess?: CronJobBodyNotifyOnFailure; notifyEmails?: null; groupId?: null; id?: unknown; organizationId?: unknown; lastRunAt?: unknown; createdAt?: unknown; updatedAt?: unknown; lastRunStatus?: unknown; nextRunAt?: unknown };

export type UpdateDestinationBody = { name?: DisplayName; slug?: Slug; type?: TypeField; description?: DescriptionField; enabled?: EnabledField; isActive?: boolean; url?: DestinationBodyUrl; method?: MethodField; headers?: DestinationBodyHeaders; headerTemplates?: DestinationBodyHeaderTemplates; authType?: AuthTypeField; authConfig?: AuthConfigField; timeoutMs?: TimeoutMsField; tls?: TlsField; useStaticIp?: UseStaticIpField; forwardQuery?: ForwardQueryField; forwardHeaders?: ForwardHeadersField; payloadForm?: PayloadFormField; config?: WarehouseConfigChange; fieldMapping?: FieldMappingField; ordered?: OrderedField; throttle?: ThrottleBodyChange; retryPolicy?: RetryPolicyBodyChange; expiresAfterSeconds?: ExpiresAfterSecondsField; signingSecret?: SigningSecretField; signatureScheme?: DestinationBodySignatureScheme; awaitsSigningSecret?: AwaitsSigningSecretField; id?: unknown; organizationId?: unknown; successRate?: unknown; avgLatency?: unknown; deliveriesCount?: unknown; deliveryCount?: unknown; lastDeliveryAt?: unknown; createdAt?: unknown; updatedAt?: unknown; publicKey?: unknown; previousPublicKeys?: unknown };

export type UpdateEventTypeBody = { name?: EventTypeBodyName; displayName?: DisplayNameField; description?: DescriptionField; category?: CategoryField; schema?: SchemaField; examplePayload?: string | null; documentationUrl?: HttpUrl | null; isEnabled?: boolean; isDeprecated?: boolean; deprecatedMessage?: DeprecatedMessageField; expiresAfterSeconds?: EventTypeExpiresAfterSeconds; defaultPriority?: null; isPublic?: false; id?: unknown; organizationId?: unknown; schemaVersion?: unknown; deprecatedAt?: unknown; subscriptionCount?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type UpdateFilterBody = { name?: DisplayName; slug?: Slug; description?: DescriptionField; conditions?: ConditionsField; logic?: LogicField; sharedWith?: SharedWith; sharedFrom?: SharedFrom; id?: unknown; organizationId?: unknown; routeCount?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type UpdateNotificationChannelBody = { name?: DisplayName; slug?: Slug; type?: NotificationChannelItemType; config?: SlackChannelConfigChange | TeamsChannelConfigChange | DiscordChannelConfigChange | PagerDutyChannelConfigChange | EmailChannelConfigChange | WebhookChannelConfigChange; enabled?: boolean; isActive?: boolean; id?: unknown; organizationId?: unknown; lastNotifiedAt?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type UpdatePayloadSchemaBody = { name?: DisplayName; slug?: Slug; description?: DescriptionField; jsonSchema?: JsonSchemaField; sharedWith?: SharedWith; sharedFrom?: SharedFrom; id?: unknown; organizationId?: unknown; version?: unknown; routeCount?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type UpdateReplayBody = { name?: Slug; slug?: Slug; what?: WhatField; filter?: ReplayFilter; ratePerSecond?: RatePerSecondField; toDestinationId?: ToDestinationIdField; stopAfterFailurePercent?: StopAfterFailurePercentField; ttlSecondsAfterFinished?: number | null; dryRun?: DryRunField; suspend?: boolean; cancel?: boolean; id?: unknown; organizationId?: unknown; phase?: unknown; plan?: unknown; queued?: unknown; skipped?: unknown; skippedByReason?: unknown; delivered?: unknown; failed?: unknown; endedOtherwise?: unknown; waiting?: unknown; failure?: unknown; alreadyRan?: unknown; createdAt?: unknown; updatedAt?: unknown; startedAt?: unknown; completedAt?: unknown; estimatedCompletionAt?: unknown };

export type UpdateRouteBody = { name?: DisplayName; slug?: Slug; description?: DescriptionField; sourceId?: SourceIdField; destinationIds?: Array<string>; destinationId?: string; filterId?: FilterIdField; filterConditions?: FilterConditionsField; filterLogic?: FilterLogicField; transformId?: string | null; schemaId?: SchemaIdField; priority?: PriorityField; failoverDestinationIds?: FailoverDestinationIdsField; failoverAfterAttempts?: FailoverAfterAttemptsField; circuitCooldownSeconds?: CircuitCooldownSecondsField; circuitFailureThreshold?: CircuitFailureThresholdField; circuitProbeSuccessThreshold?: CircuitProbeSuccessThresholdField; expectedResponse?: ExpectedResponseField; notifyOnFailure?: NotifyOnFailureField; notifyOnSuccess?: boolean; notifyOnRecovery?: NotifyOnRecoveryField; notifyEmails?: NotifyEmailsField; notificationChannelIds?: NotificationChannelIdsField; failureThreshold?: FailureThresholdField; enabled?: EnabledField; isActive?: boolean; id?: unknown; organizationId?: unknown; eventsRouted?: unknown; lastEventAt?: unknown; source?: unknown; destinations?: unknown; filter?: unknown; transform?: unknown; schema?: unknown; createdAt?: unknown; updatedAt?: unknown; circuitState?: unknown };

export type UpdateSourceBody = { name?: DisplayName; slug?: Slug; description?: DescriptionField; provider?: ProviderField; verification?: SourceVerificationChange | null; signingSecret?: SourceBodySigningSecret; awaitsSigningSecret?: AwaitsSigningSecretField; rejectInvalidSignatures?: boolean; rateLimitPerMinute?: number | null; ipFilterMode?: IpFilterModeField; ipAllowlist?: IpAllowlistField; ipDenylist?: IpDenylistField; dedupStrategy?: DedupStrategyField; dedupHeader?: DedupHeaderField; dedupCustomHeader?: string | null; dedupEnabled?: boolean; encryptFields?: EncryptFieldsField; maskFields?: MaskFieldsField; transientMode?: false; dedupWindowHours?: DedupWindowHoursField; handshake?: HandshakeField; verifyToken?: VerifyTokenField; allowedMethods?: AllowedMethodsField; enabled?: boolean; isActive?: boolean; id?: unknown; organizationId?: unknown; ingestUrl?: unknown; eventsCount?: unknown; eventCount?: unknown; routeCount?: unknown; lastEventAt?: unknown; hasVerifyToken?: unknown; hasSigningSecret?: unknown; createdAt?: unknown; updatedAt?: unknown; signingSecretLast4?: unknown };

export type UpdateTransformBody = { name?: DisplayName; slug?: Slug; description?: DescriptionField; type?: TransformType; transformType?: "jsonata" | "javascript" | "liquid"; code?: CodeField; sharedWith?: SharedWith; sharedFrom?: SharedFrom; inputFormat?: InputFormatField; outputFormat?: OutputFormatField; id?: unknown; organizationId?: unknown; routeCount?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type UpdateWebhookApplicationBody = { name?: DisplayName; externalId?: string | null; metadata?: MetadataField; rateLimitPerSecond?: RateLimitPerSecondField; rateLimitPerMinute?: RateLimitPerMinuteField; rateLimitPerHour?: RateLimitPerHourField; isDisabled?: IsDisabledField; disabledReason?: DisabledReasonField; disableAfterHours?: DisableAfterHoursField; id?: unknown; organizationId?: unknown; totalEndpoints?: unknown; totalMessagesSent?: unknown; totalMessagesFailed?: unknown; lastEventAt?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type UpdateWebhookEndpointBody = { applicationId?: string; url?: UrlField; description?: string | null; headers?: HeadersField; headerTemplates?: HeaderTemplatesField; timeoutSeconds?: TimeoutSecondsField; rateLimitPerSecond?: WebhookEndpointRateLimitPerSecond; rateLimitStrict?: RateLimitStrictField; ordered?: WebhookEndpointOrdered; retryDelays?: RetryDelaysField; expiresAfterSeconds?: WebhookEndpointExpiresAfterSeconds; successStatusCodes?: SuccessStatusCodesField; payloadForm?: PayloadFormField; signatureScheme?: SignatureSchemeField; circuitFailureThreshold?: CircuitFailureThresholdField; circuitSuccessThreshold?: CircuitProbeSuccessThresholdField; circuitCooldownSeconds?: CircuitCooldownSecondsField; isDisabled?: boolean; disabledReason?: DisabledReasonField; disableAfterHours?: DisableAfterHoursField; backoffType?: BackoffTypeField; ipAllowlistNotes?: null; useStaticIp?: false; id?: unknown; organizationId?: unknown; circuitState?: unknown; circuitFailureCount?: unknown; secretPrefix?: unknown; hasSecret?: unknown; secretVersion?: unknown; publicKey?: unknown; previousPublicKeys?: unknown; isVerified?: unknown; totalMessages?: unknown; totalSuccesses?: unknown; totalFailures?: unknown; avgResponseTimeMs?: unknown; lastSuccessAt?: unknown; lastFailureAt?: unknown; subscriptionCount?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type UpdateWebhookSubscriptionBody = { endpointId?: string; eventTypeId?: string; filterExpression?: FilterExpressionField; labelFilters?: LabelFiltersField; labelFilterMode?: LabelFilterModeField; transformId?: TransformIdField; isEnabled?: boolean; priorityOverride?: null; id?: unknown; organizationId?: unknown; lastFilterError?: unknown; endpointUrl?: unknown; eventTypeName?: unknown; eventTypeDisplayName?: unknown; applicationId?: unknown; applicationName?: unknown; createdAt?: unknown; updatedAt?: unknown };

export type UpdatedAtField = string;

export type UrlField = HttpUrl;

export type UseStaticIpField = boolean;

export type VerifyTokenField = string | null;

export type WaitingUntilField = string | null;

export type WarehouseConfig = { prefix?: string; fileFormat?: "jsonl" | "json"; partitionBy?: "date" | "hour" | "source"; identity?: IdentityField; bucket?: BucketField; region?: RegionField; endpoint?: EndpointField; accessKeyId?: string; secretAccessKey?: string; projectId?: string; serviceAccountKey?: string; accountName?: string; containerName?: string; accountKey?: string };

export type WarehouseConfigChange = { prefix?: string; fileFormat?: "jsonl" | "json"; partitionBy?: "date" | "hour" | "source"; identity?: IdentityField; bucket?: BucketField; region?: RegionField; endpoint?: EndpointField; accessKeyId?: string; secretAccessKey?: string; projectId?: string; serviceAccountKey?: string; accountName?: string; containerName?: string; accountKey?: string };

export type WarehouseTestResult = { success: true; result: WrittenFile; message: MessageField };

export type WebhookApplication = { id: IdField; organizationId: OrganizationIdField; externalId: ExternalIdField; name: DisplayName; metadata: Record<string, unknown>; rateLimitPerSecond: RateLimitPerSecondField; rateLimitPerMinute: RateLimitPerMinuteField; rateLimitPerHour: RateLimitPerHourField; isDisabled: IsDisabledField; disabledReason: DisabledReasonField; disableAfterHours: DisableAfterHoursField; totalEndpoints: number; totalMessagesSent: TotalMessagesSentField; totalMessagesFailed: number; lastEventAt: string | null; createdAt: CreatedAtField; updatedAt: UpdatedAtField };

export type WebhookApplicationEnvelope = { data: WebhookApplication };

export type WebhookChannelConfig = { url: HttpsUrl; headers?: WebhookChannelConfigHeaders; secret?: SecretField };

export type WebhookChannelConfigChange = { url?: HttpsUrl; headers?: WebhookChannelConfigHeaders; secret?: SecretField };

export type WebhookChannelConfigHeaders = Record<string, string> | null;

export type WebhookEndpoint = { id: IdField; organizationId: OrganizationIdField; applicationId: string; url: UrlField; description: CronJobSettingsDescription; headers: HeadersField; headerTemplates: HeaderTemplatesField; timeoutSeconds: TimeoutSecondsField; rateLimitPerSecond: WebhookEndpointRateLimitPerSecond; rateLimitStrict: RateLimitStrictField; ordered: WebhookEndpointOrdered; retryDelays: RetryDelaysField; expiresAfterSeconds: WebhookEndpointExpiresAfterSeconds; successStatusCodes: SuccessStatusCodesField; circuitFailureThreshold: CircuitFailureThresholdField; circuitSuccessThreshold: CircuitProbeSuccessThresholdField; circuitCooldownSeconds: CircuitCooldownSecondsField; payloadForm: PayloadFormField; signatureScheme: SignatureSchemeField; isDisabled: boolean; disabledReason: DisabledReasonField; disableAfterHours: DisableAfterHoursField; circuitState: CircuitStateField; circuitFailureCount: FailureCountField; secretPrefix: string; hasSecret: boolean; secretVersion: number; publicKey: PublicKeyField; previousPublicKeys: PreviousPublicKeysField; isVerified: boolean; totalMessages: TotalMessagesField; totalSuccesses: TotalMessagesSentField; totalFailures: number; avgResponseTimeMs: number | null; lastSuccessAt: LastSuccessAtField; lastFailureAt: LastFailureAtField; subscriptionCount: number; createdAt: CreatedAtField; updatedAt: UpdatedAtField };

export type WebhookEndpointEnvelope = { data: WebhookEndpoint };

export type WebhookEndpointExpiresAfterSeconds = number | null;

export type WebhookEndpointOrdered = boolean;

export type WebhookEndpointRateLimitPerSecond = number;

export type WebhookEndpointTest = { success: boolean; responseStatus: ResponseStatusField; responseTimeMs: number; responseBody: ResponseBodyField; errorType: string | null; errorMessage: string | null; detail?: AttemptDetail };

export type WebhookEndpointTestEnvelope = { data: WebhookEndpointTest };

export type WebhookEvent = (ExportedWebhookEvent) & ({ endpointId: string | null; payloadEncoding: "json" | "text" | "base64" | null; messages: Array<OutboundMessage>; unreached: { total: number; byReason: Record<string, number>; subscriptions: Array<{ subscriptionId: string | null; endpointId: string; applicationId: string; messageId: string | null; reason: "created_after" | "no_subscription" | "other_application" | "subscription_disabled" | "endpoint_disabled" | "application_disabled" | "label_mismatch" | "expression_false" | "expression_failed" | "not_judged" | "transform_filtered" | "transform_failed" | "matches_now"; labels: Array<{ label: string; expected: string | Array<string>; actual: string | null }>; expression: string | null; error: string | null; changedSince: boolean }>; scanned: number; isComplete: boolean } });

export type WebhookEventEnvelope = { data: WebhookEvent };

export type WebhookEventItem = { id: string; organizationId: OrganizationIdField; eventType: string; labels: Record<string, string>; metadata: Record<string, unknown>; idempotencyKey: string | null; applicationId: string | null; endpointIds: Array<string>; deliverAt: string | null; createdAt: string; messageCount: number };

export type WebhookSubscription = { id: IdField; organizationId: OrganizationIdField; endpointId: string; eventTypeId: string; filterExpression: string | null; labelFilters: Record<string, string | Array<string>>; labelFilterMode: LabelFilterModeField; transformId: string | null; isEnabled: boolean; lastFilterError: string | null; endpointUrl: string | null; eventTypeName: string | null; eventTypeDisplayName: string | null; applicationId: string; applicationName: string | null; createdAt: CreatedAtField; updatedAt: UpdatedAtField };

export type WebhookSubscriptionEnvelope = { data: WebhookSubscription };

export type WebhookUrlField = string;

export type WhatField = "deliveries" | "messages" | "events";

export type WhereField = string;

export type WrittenFile = { key: string; size: number; count: number };
