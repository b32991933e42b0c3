/** Why a warehouse does not get the identity of the delivery pods; for those who ask for it, and for who reads its attempts. */
export const platformIdentityNotAllowed =
  'this installation does not allow the identity of the delivery pods (POSTHORN_WAREHOUSE_PLATFORM_IDENTITY)';
