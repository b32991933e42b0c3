/** Why a warehouse does not get the identity of the delivery pods; for errors of requests, and for readers of its attempts. */
export const platformIdentityNotAllowed =
  'this installation does not allow the identity of the delivery pods (POSTHORN_WAREHOUSE_PLATFORM_IDENTITY)';
