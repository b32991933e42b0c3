import type { CertificateAuthority } from '../support/certificate-authority.ts';

export type Manifest = { apiVersion: string; kind: string; metadata: { name: string; namespace?: string } } & Record<string, unknown>;

/** Posthorn as an installation of some kind, seen by its users. */
export interface World {
  /** URL of the REST API, without a slash at the end. */
  readonly url: string;
  /** By which senders reach `/ingest/`, without a slash at the end. */
  readonly ingestUrl: string;
  /** Address by which deliveries reach a receiver on this machine. */
  readonly receiverAddress: string;
  /** The CA whose receivers deliveries trust. */
  readonly authority: CertificateAuthority;
  /** Hands manifests over in the way of this installation. */
  apply(manifests: readonly Manifest[]): Promise<void>;
  /** Removes a manifest again. */
  remove(manifest: Manifest): Promise<void>;
  /** Waits until the condition Ready of the object is True. */
  waitUntilReady(manifest: Manifest): Promise<void>;
  stop(): Promise<void>;
}
