// Made by hack/gen-web-api.ts from the OpenAPI document. Do not edit.
import type { FormField } from '../form-schema.ts';

export const fields: FormField[] = [
  {"name":"name","help":"Name shown to people.","node":{"kind":"text"},"isMain":true,"isRequired":true},
  {"name":"provider","help":"Whose signature scheme is checked.","node":{"kind":"choice","values":["generic","custom","github","gitlab","stripe","shopify","slack","twilio","paddle","standard-webhooks","svix","intercom","sentry","bitbucket","posthorn"]},"isMain":true,"default":"generic"},
  {"name":"signingSecret","help":"What the provider signs with. It is not shown again. Of standard-webhooks and svix whsec_ secrets, whpk_ public keys (Ed25519), or both, separated by blanks. Emptied, it is removed. Another one ends all old ones at once; rotate-secret gives the last a grace.","node":{"kind":"text","isSecret":true},"isNullable":true,"isMain":true},
  {"name":"verification","help":"How the sender signs: an HMAC of the body. Needed with provider custom.","node":{"kind":"object","fields":[{"name":"algorithm","help":"Hash of the HMAC of the body.","node":{"kind":"choice","values":["sha1","sha256","sha512"]},"default":"sha256"},{"name":"header","help":"Header that contains the signature.","node":{"kind":"text"},"isRequired":true},{"name":"encoding","help":"How the signature is written.","node":{"kind":"choice","values":["hex","base64"]},"default":"hex"},{"name":"prefix","help":"Prefix of the signature in the header, such as sha256=.","node":{"kind":"text"},"default":""}]},"isNullable":true,"isReplaced":true,"isMain":true,"when":{"field":"provider","values":["custom"]}},
  {"name":"description","help":"What this is for.","node":{"kind":"text"},"isNullable":true,"isMain":true},
  {"name":"enabled","help":"While off, the ingest path answers 403.","node":{"kind":"boolean"},"isMain":true,"default":true},
  {"name":"slug","help":"Name in addresses and in Kubernetes. Empty: made of the name.","node":{"kind":"text"},"isFixed":true},
  {"name":"awaitsSigningSecret","help":"On for what was imported without its signing secret: it is not enabled before it has one, or this is removed.","node":{"kind":"boolean"}},
  {"name":"rejectInvalidSignatures","help":"On by default once there is a signing secret.","node":{"kind":"boolean"}},
  {"name":"rateLimitPerMinute","help":"Requests that are taken in a minute. Empty: unlimited.","node":{"kind":"number"},"isNullable":true},
  {"name":"ipFilterMode","help":"Which lists count. With both, an address must be in the allowlist and not in the denylist.","node":{"kind":"choice","values":["none","allowlist","denylist","both"]},"default":"none"},
  {"name":"ipAllowlist","help":"Networks that may send, as CIDR.","node":{"kind":"list"}},
  {"name":"ipDenylist","help":"Networks that may not send, as CIDR.","node":{"kind":"list"}},
  {"name":"dedupStrategy","help":"What makes two events the same: the delivery id of the provider, where there is one (auto) or always (provider_id), the body, the header Idempotency-Key, or nothing.","node":{"kind":"choice","values":["auto","provider_id","payload_hash","idempotency_key","none"]},"default":"auto"},
  {"name":"dedupHeader","help":"Header that contains the id, instead of the usual one.","node":{"kind":"text"},"isNullable":true},
  {"name":"dedupWindowHours","help":"Hours for which the same event is a duplicate.","node":{"kind":"number"},"default":24},
  {"name":"handshake","help":"A verification request of the sender before it sends events. crc_token is answered with the signing secret. It is answered regardless of “Allowed methods”, and is no event.","node":{"kind":"choice","values":["hub_challenge","validation_token","challenge","crc_token","cloudevents"]},"isNullable":true},
  {"name":"verifyToken","help":"With handshake hub_challenge: what hub.verify_token must be. It is not shown again. Emptied, it is removed: every subscription is confirmed.","node":{"kind":"text","isSecret":true},"isNullable":true,"when":{"field":"handshake","values":["hub_challenge"]}},
  {"name":"allowedMethods","help":"Methods that the provider may use; 405 to others.","node":{"kind":"choices","values":["POST","PUT","PATCH","GET","DELETE"]},"default":["POST"]},
];
