import { ApiError } from '../../api/client.ts';
import { type Exact, readExact } from './exact.ts';

/** Null: it has none. Throws ApiError. */
export async function storedManifestOf(
  id: string,
  organization: string,
  signal?: AbortSignal,
): Promise<Exact<'GET /manifests/{id}'> | null> {
  try {
    return await readExact('GET /manifests/{id}', { path: { id } }, { organization, ...(signal !== undefined && { signal }) });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** Null: it has none, or it could not be read. The API still refuses changes of what others own. */
export async function manifestOf(id: string, organization: string, signal?: AbortSignal): Promise<Exact<'GET /manifests/{id}'> | null> {
  try {
    return await storedManifestOf(id, organization, signal);
  } catch (error) {
    if (signal?.aborted === true) throw error;
    return null;
  }
}
