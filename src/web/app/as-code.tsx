import { type ReactElement, useState } from 'react';
import { type Input, type OperationName, urlOf } from '../api/client.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { Command } from '../ui/notices.tsx';
import { shellQuoted } from '../ui/shell-text.ts';
import { useOrganization } from './use-api.ts';

/** This view as the call of the API that it shows. */
export function AsCode<Name extends OperationName>({ name, input, yaml }: { name: Name; input: Input<Name>; yaml?: string }): ReactElement {
  const organization = useOrganization();
  const [method = 'GET', template = ''] = name.split(' ');
  const body = input.body === undefined ? '' : ` \\\n  -H 'content-type: application/json' -d ${shellQuoted(JSON.stringify(input.body))}`;
  const verb = method === 'GET' ? '' : `-X ${method} `;
  const curl = `curl ${verb}${shellQuoted(`${location.origin}${urlOf(template, input, organization)}`)} \\\n  -H "x-api-key: $KEY"${body}`;
  return (
    <CodeDialog
      parts={
        yaml === undefined
          ? [['curl', curl]]
          : [
              ['curl', curl],
              ['YAML', yaml],
            ]
      }
    />
  );
}

/** The live stream with these parameters. */
export function AsStream({ query }: { query: Record<string, string | undefined> }): ReactElement {
  const organization = useOrganization();
  return (
    <CodeDialog
      parts={[
        [
          'curl',
          `curl -N ${shellQuoted(`${location.origin}${urlOf('/stream', { query: query as never }, organization)}`)} \\\n  -H "x-api-key: $KEY"`,
        ],
      ]}
    />
  );
}

function CodeDialog({ parts }: { parts: readonly (readonly [language: string, text: string])[] }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="btn" title="This view as code" onClick={() => setOpen(true)}>
        <Icon name="terminal" />
        As code
      </button>
      <Dialog title="This view as code" isOpen={isOpen} onClose={() => setOpen(false)}>
        {parts.map(([language, text]) => (
          <section key={language}>
            <h3>{language}</h3>
            <Command text={text} />
          </section>
        ))}
      </Dialog>
    </>
  );
}
