import type { ReactElement } from 'react';

/** The headers whose values are made of the message, within a list of facts; nothing where there are none. */
export function TemplateFacts({ templates }: { templates: readonly { name: string; template: string }[] }): ReactElement | null {
  if (templates.length === 0) return null;
  return (
    <>
      <dt>Templated headers</dt>
      <dd>
        {templates.map(({ name, template }) => (
          <div key={name}>
            <code>
              {name}: {template}
            </code>
          </div>
        ))}
      </dd>
    </>
  );
}
