import { type ReactElement, useState } from 'react';
import { type Input, type OperationName, urlOf } from '../api/client.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { Command } from '../ui/notices.tsx';
import { useOrganization } from './use-api.ts';

/** This view as the call of the API that it shows. */
export function AsCode<Name extends OperationName>({ name, input, yaml }: { name: Name; input: Input<Name>; yaml?: string }): ReactElement {
  const organization = useOrganization();
  const [isOpen, setOpen] = useState(false);
  const [method = 'GET', template = ''] = name.split(' ');
  const body = input.body === undefined ? '' : ` \\\n  -H 'content-type: application/json' -d ${quoted(JSON.stringify(input.body))}`;
  const verb = method === 'GET' ? '' : `-X ${method} `;
  return (
    <>
      <button type="button" className="btn" title="This view as curl" onClick={() => setOpen(true)}>
        <Icon name="terminal" />
        As code
      </button>
      <Dialog title="This view as code" isOpen={isOpen} onClose={() => setOpen(false)}>
        <h3>curl</h3>
        <Command
          text={`curl ${verb}${quoted(`${location.origin}${urlOf(template, input, organization)}`)} \\\n  -H "x-api-key: $KEY"${body}`}
        />
        {yaml === undefined ? null : (
          <>
            <h3>YAML</h3>
            <Command text={yaml} />
          </>
        )}
      </Dialog>
    </>
  );
}

/** For a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
