import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import {
  createContext,
  type ReactElement,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { type ApiError, call, readTagged } from '../api/client.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { Failure, Loading } from '../ui/notices.tsx';
import { manifestOf } from './manifest/manifest-of.ts';
import { declarerOf, managersOf } from './manifest/manifest-view.tsx';
import { Refusal, type WriteState } from './resource-acts.tsx';
import { useOrganization } from './use-api.ts';

type Family =
  | 'sources'
  | 'routes'
  | 'destinations'
  | 'filters'
  | 'transforms'
  | 'schemas'
  | 'cron'
  | 'notification-channels'
  | 'replays'
  | 'webhook-applications'
  | 'webhook-endpoints'
  | 'webhook-subscriptions'
  | 'event-types';

export interface DeleteActProps {
  family: Family;
  id: string;
  /** What it is, such as `source`. */
  noun: string;
  /** Its name; absent: the question names it `this` and its noun. */
  name?: string;
  /** The button. @default `Delete` and the noun */
  word?: string;
  /** @default `Delete`, the noun and the name */
  question?: string;
  isSmall?: boolean;
  /** When the record that is shown was changed last. */
  updatedAt: string;
  onDeleted?: () => void;
  /** Its effect on messages and on other resources. Rendered while the question is open. */
  children: ReactNode;
}

/** Registers a part of the effect that has not been read yet; returns the function that unregisters it. */
const HoldContext = createContext<() => () => void>(() => () => undefined);

/** Replaces a part of the effect until that part has been read. The delete button waits for it. */
export function EffectLoading({ what }: { what: string }): ReactElement {
  const hold = useContext(HoldContext);
  useLayoutEffect(hold, [hold]);
  return <Loading what={what} />;
}

/**
 * Deletes a resource after a question that names the effect. What others declare is locked: it is deleted there. What has changed since it was shown is
 * deleted only after the reader has been informed.
 */
export function DeleteAct(props: DeleteActProps): ReactElement {
  const { noun, name, word = `Delete ${noun}`, question = `Delete ${name === undefined ? `this ${noun}` : `${noun} ${name}`}?` } = props;
  const [isOpen, setOpen] = useState(false);
  const [shownAt, setShownAt] = useState(props.updatedAt);
  const remove = useDelete(props);
  const wasDeleted = useRef(false);
  useEffect(
    () => () => {
      if (wasDeleted.current) focusPage();
    },
    [],
  );
  const open = (): void => {
    if (!remove.isPending) remove.reset();
    setShownAt(props.updatedAt);
    setOpen(true);
  };
  const act = (tag: string | null): void =>
    remove.mutate(tag, {
      onSuccess: () => {
        wasDeleted.current = true;
        setOpen(false);
        props.onDeleted?.();
      },
    });
  return (
    <>
      <button type="button" className={`btn is-danger${props.isSmall === true ? ' is-sm' : ''}`} onClick={open}>
        {word}…
      </button>
      <Dialog title={question} isOpen={isOpen} onClose={() => setOpen(false)}>
        <Question {...props} word={word} shownAt={shownAt} write={{ ...remove, mutate: act }} onClose={() => setOpen(false)}>
          {props.children}
        </Question>
      </Dialog>
    </>
  );
}

const maxFrames = 300;

/** Moves the focus to the page once the next screen is there: the button that had it is gone with what it deleted. */
function focusPage(framesLeft = maxFrames): void {
  if (document.activeElement !== document.body) return;
  document.getElementById('main')?.focus();
  if (document.activeElement === document.body && framesLeft > 0) requestAnimationFrame(() => focusPage(framesLeft - 1));
}

function versionKey(organization: string, { family, id }: Pick<DeleteActProps, 'family' | 'id'>): readonly unknown[] {
  return ['version', organization, family, id];
}

/** Deletes the version that the tag names. */
function useDelete({ family, id }: DeleteActProps) {
  const organization = useOrganization();
  const client = useQueryClient();
  return useMutation<unknown, ApiError, string | null>({
    mutationFn: (ifMatch) => call(`DELETE /${family}/{id}`, { path: { id } }, { organization, ifMatch }),
    onSettled: (_answer, error) => {
      if (error?.isOutdated === true) void client.invalidateQueries({ queryKey: versionKey(organization, { family, id }) });
      void client.invalidateQueries({ queryKey: [organization] });
    },
  });
}

/** The record when the question opens. It is read again after the API has refused to delete it in this version. */
function useVersion({ family, id, shownAt }: Pick<QuestionProps, 'family' | 'id' | 'shownAt'>) {
  const organization = useOrganization();
  const client = useQueryClient();
  return useQuery<{ tag: string | null; isChanged: boolean }, ApiError>({
    queryKey: versionKey(organization, { family, id }),
    queryFn: async ({ signal }) => {
      const { bytes, tag } = await readTagged(`GET /${family}/{id}`, { path: { id } }, { organization, signal });
      const answer = JSON.parse(new TextDecoder().decode(bytes));
      const { updatedAt } = answer.data ?? answer.cronJob ?? answer;
      const isChanged = updatedAt !== shownAt;
      if (isChanged) void client.invalidateQueries({ queryKey: [organization] });
      return { tag, isChanged };
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
}

interface QuestionProps extends Pick<DeleteActProps, 'family' | 'id' | 'noun' | 'children'> {
  word: string;
  /** When the record that was shown had been changed last. */
  shownAt: string;
  write: Omit<WriteState, 'mutate'> & { mutate: (tag: string | null) => void };
  onClose: () => void;
}

function Question({ family, id, noun, word, shownAt, write, onClose, children }: QuestionProps): ReactElement {
  const organization = useOrganization();
  const { data: owner, isPending } = useQuery({
    queryKey: [organization, 'declarer', id],
    queryFn: async ({ signal }) => {
      const manifest = (await manifestOf(id, organization, signal))?.answer;
      if (manifest === undefined) return null;
      const managers = managersOf(manifest);
      return managers.length > 0 || manifest.isLocked ? declarerOf(managers) : null;
    },
    gcTime: 0,
  });
  const version = useVersion({ family, id, shownAt });
  const [holds, setHolds] = useState(0);
  const hold = useCallback(() => {
    setHolds((count) => count + 1);
    return () => setHolds((count) => count - 1);
  }, []);
  const hint = useId();
  const isReading = isPending || version.isFetching || holds > 0;
  return (
    <>
      {isPending ? (
        <Loading what="who declares it" />
      ) : owner == null ? (
        <>
          {version.data?.isChanged === true ? (
            <div className="note" role="alert">
              <Icon name="info" />
              <p>
                <strong>The {noun} has changed since this page showed it.</strong> The page now shows the current version. Check it before
                you delete it.
              </p>
            </div>
          ) : null}
          <HoldContext value={hold}>{children}</HoldContext>
        </>
      ) : (
        <div className="note">
          <Icon name="git" />
          <p>
            <strong>{owner}</strong> declares it. Delete it there: here it is locked.
          </p>
        </div>
      )}
      {version.error === null ? null : (
        <Failure message={version.error.message} requestId={version.error.requestId} retry={() => void version.refetch()} />
      )}
      <Refusal error={write.error} />
      <div className="btn-row is-end">
        <span className="small muted" id={hint}>
          {owner == null && isReading ? 'You can delete it once its effect has been read.' : ''}
        </span>
        <button type="button" className="btn" onClick={onClose}>
          {owner == null ? 'Keep it' : 'Close'}
        </button>
        {owner == null ? (
          <button
            type="button"
            className="btn is-danger"
            aria-describedby={hint}
            disabled={isReading || version.data === undefined || write.isPending}
            onClick={() => write.mutate(version.data?.tag ?? null)}
          >
            {word}
          </button>
        ) : null}
      </div>
    </>
  );
}
