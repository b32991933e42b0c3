import type { ReactElement } from 'react';
import { Icon } from '../../ui/icon.tsx';
import { declarerOf, type Manifest, managersOf } from '../manifest/manifest-view.tsx';

interface OwnersNoteProps {
  manifest: Manifest;
  /** What is typed becomes a patch. */
  isForGit: boolean;
  onSwitch: () => void;
}

/** Why fields are locked, and the way to change them all the same: by a patch for Git. */
export function OwnersNote({ manifest, isForGit, onSwitch }: OwnersNoteProps): ReactElement | null {
  const managers = managersOf(manifest);
  if (managers.length === 0 && !manifest.isLocked) return null;
  return (
    <div className="note">
      <Icon name="git" />
      <div>
        <p>
          <strong>{declarerOf(managers)}</strong>{' '}
          {isForGit
            ? 'owns some of these fields. Change what you like: it becomes a patch for Git, and nothing is saved here.'
            : manifest.isLocked
              ? 'declares all of it. It is locked here: change its manifest.'
              : 'owns the fields that are locked here. Change them there, or write a patch of what you want.'}
        </p>
        {manifest.isLocked ? null : (
          <p className="btn-row">
            <button type="button" className="btn is-sm" aria-pressed={isForGit} onClick={onSwitch}>
              Write a patch
            </button>
          </p>
        )}
      </div>
    </div>
  );
}
