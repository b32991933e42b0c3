/** What the record of a warehouse says is not allowed, or cannot be done safely. */
export class WarehouseRefusedError extends Error {}
