import { type ReactElement, type ReactNode, useId, useState } from 'react';
import type { FormField } from '../../api/form-schema.ts';
import { Icon } from '../../ui/icon.tsx';
import { managersIn } from '../manifest/manifest-view.tsx';
import { AllOrListed, Choice, Choices, type ControlProps, JsonInput, ListInput, MapInput, NumberInput, TextInput } from './controls.tsx';
import {
  type Body,
  type Complaints,
  complaintAt,
  fieldsIn,
  isMasked,
  isShown,
  labelOf,
  objectIn,
  type Whole,
  withMember,
} from './form-body.ts';
import { type Lock, lockOf, type Owned, ownedBy } from './locks.ts';
import { Reference, References } from './references.tsx';

export interface FieldsProps {
  fields: readonly FormField[];
  body: Body;
  /** The initial value of the form, at the same path. */
  start: Body;
  onChange: (body: Body) => void;
  whole: Whole;
  complaints: Complaints;
  /** Path of the object that the fields are in, with a dot at its end. */
  path: string;
  isChange: boolean;
  owned: Owned;
}

/** A control of each field that counts. */
export function Fields({ fields, body, start, onChange, ...rest }: FieldsProps): ReactElement {
  const shown = fields.filter((field) => isShown(field, fields, body, rest.whole));
  return (
    <>
      {shown.map((field) => (
        <OneField
          key={field.name}
          {...rest}
          field={field}
          value={body[field.name]}
          began={start[field.name]}
          onChange={(value) => onChange(withMember(body, field.name, value))}
        />
      ))}
    </>
  );
}

type OneFieldProps = Omit<FieldsProps, 'fields' | 'body' | 'start' | 'onChange'> & {
  field: FormField;
  value: unknown;
  began: unknown;
  onChange: (value: unknown) => void;
};

function OneField(props: OneFieldProps): ReactElement {
  const { field, value, began, onChange, complaints, path, isChange, owned } = props;
  const { node, name, help } = field;
  const id = useId();
  const at = `${path}${name}`;
  const isContainer = node.kind === 'object' || node.kind === 'branches' || node.kind === 'objects';
  const lock = lockOf(owned, at, node);
  const isLocked = lock?.isWhole === true;
  const className = isLocked ? 'field is-owned' : 'field';
  const complaint = complaintAt(complaints, at, !isContainer);
  const error =
    complaint === undefined ? null : (
      <span className="error" id={`${id}-error`}>
        <Icon name="fail" size={14} />
        {complaint}
      </span>
    );
  const label = (
    <>
      {labelOf(name)}
      {field.isRequired ? <span className="c-bad"> *</span> : null}
      <span className="path" aria-hidden="true">
        {name}
      </span>
    </>
  );
  const about = (
    <>
      <span className="help" id={`${id}-help`}>
        {withCode(help)}
      </span>
      {lock === null ? null : <OwnerOf lock={lock} id={`${id}-owner`} />}
      {error}
    </>
  );
  const describedBy = `${id}-help${lock === null ? '' : ` ${id}-owner`}${complaint === undefined ? '' : ` ${id}-error`}`;
  const all = field.isAllWithout ? <AllOrListed label={labelOf(name)} value={value} isLocked={isLocked} onChange={onChange} /> : null;
  if (isContainer || node.kind === 'choices' || node.kind === 'map' || node.kind === 'references')
    return (
      <fieldset
        className={`${className} field-group`}
        aria-describedby={describedBy}
        data-invalid={complaint === undefined ? undefined : ''}
        // What is locked in it may have nothing that takes the focus.
        tabIndex={isLocked ? 0 : -1}
      >
        <legend className="label">{label}</legend>
        {about}
        {node.kind === 'choices' ? (
          <Choices values={node.values} value={value ?? field.default} isLocked={isLocked} onChange={onChange} />
        ) : null}
        {node.kind === 'map' ? <MapInput label={labelOf(name)} value={value} isLocked={isLocked} onChange={onChange} /> : null}
        {node.kind === 'references' ? (
          <References {...props} to={node.to} label={labelOf(name)} isAllWithout={field.isAllWithout} isLocked={isLocked} />
        ) : null}
        {all}
        {node.kind === 'objects' ? <Objects {...props} lock={isLocked ? lock : null} /> : null}
        {node.kind === 'object' || node.kind === 'branches' ? (
          <div className="fields">
            <Fields
              {...props}
              fields={fieldsIn(field, props.whole)}
              body={objectIn(value)}
              start={objectIn(began)}
              onChange={(next) => onChange(Object.keys(next).length === 0 ? undefined : next)}
              path={`${at}.`}
            />
          </div>
        ) : null}
      </fieldset>
    );
  const control: ControlProps = {
    id,
    value,
    // An emptied secret is the stored one again: a button removes it.
    onChange: node.kind === 'text' && node.isSecret ? (next) => onChange(next ?? began) : onChange,
    describedBy,
    isInvalid: complaint !== undefined,
    isRequired: field.isRequired === true,
    isReadOnly: isLocked || (isChange && field.isFixed === true),
    hint: field.default === undefined ? '' : `Default: ${field.default}`,
  };
  if (node.kind === 'boolean')
    return (
      <div className={className}>
        <span className="check">
          <input
            type="checkbox"
            id={id}
            aria-describedby={describedBy}
            aria-invalid={control.isInvalid}
            aria-disabled={isLocked}
            checked={(value ?? field.default) === true}
            onChange={({ target }) => (isLocked ? undefined : onChange(target.checked))}
          />
          <span>
            <label htmlFor={id}>{labelOf(name)}</label>
          </span>
        </span>
        {about}
      </div>
    );
  return (
    <div className={className}>
      <label htmlFor={id}>{label}</label>
      {controlOf(field, control, isChange)}
      {node.kind === 'text' && node.isSecret && field.isNullable && isMasked(began) && !control.isReadOnly ? (
        <SecretRemoval label={labelOf(name)} isRemoved={value === null} onChange={(isRemoved) => onChange(isRemoved ? null : began)} />
      ) : null}
      {all}
      {about}
    </div>
  );
}

/** Text between backticks is code. */
function withCode(text: string): ReactNode {
  // biome-ignore lint/suspicious/noArrayIndexKey: a text keeps its order
  return text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}

interface SecretRemovalProps {
  label: string;
  isRemoved: boolean;
  onChange: (isRemoved: boolean) => void;
}

/** Removes a secret that is stored, when the form is saved. */
function SecretRemoval({ label, isRemoved, onChange }: SecretRemovalProps): ReactElement {
  return (
    <div>
      <button type="button" className="btn is-sm" onClick={() => onChange(!isRemoved)}>
        {isRemoved ? 'Keep' : 'Remove'} {label.toLowerCase()}
      </button>
    </div>
  );
}

/** Shows the owner of the field. */
function OwnerOf({ lock: { managers, isWhole }, id }: { lock: Lock; id: string }): ReactElement {
  return (
    <span className="help" id={id}>
      <span className="owner">
        <Icon name="git" size={12} />
        <span>
          {isWhole ? 'Owned by' : 'In part owned by'} {managers.length === 0 ? 'a manifest' : managersIn(managers)}
        </span>
      </span>
    </span>
  );
}

function controlOf({ node, isAllWithout }: FormField, control: ControlProps, isChange: boolean): ReactNode {
  switch (node.kind) {
    case 'choice':
      return <Choice {...control} values={node.values} />;
    case 'reference':
      return <Reference {...control} to={node.to} />;
    case 'list':
      return <ListInput {...control} isAllWithout={isAllWithout} />;
    case 'numbers':
      return <ListInput {...control} isAllWithout={isAllWithout} isNumeric />;
    case 'json':
      return <JsonInput {...control} />;
    case 'number':
      return <NumberInput {...control} />;
    case 'text':
      return <TextInput {...control} isSecret={node.isSecret} isLong={node.isLong} isChange={isChange} />;
    default:
      return null;
  }
}

/** A list of objects: each with its fields, and one can be added unless the list is locked. */
function Objects(props: OneFieldProps & { lock: Lock | null }): ReactElement {
  const { field, value, onChange, path, lock } = props;
  const items: unknown[] = Array.isArray(value) ? value : [];
  // Text typed in a removed item does not stay in the one that replaces it.
  const [removals, setRemovals] = useState(0);
  const put = (next: unknown[]): void => onChange(next.length === 0 ? undefined : next);
  const remove = (i: number): void => {
    setRemovals(removals + 1);
    put(items.toSpliced(i, 1));
  };
  return (
    <div className="stack">
      {items.map((item, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: an item is its index in the list
        <fieldset className="field-group" key={`${removals} ${i}`}>
          <legend className="small muted">
            {labelOf(field.name)} {i + 1}
          </legend>
          <div className="fields">
            <Fields
              {...props}
              owned={lock === null ? props.owned : ownedBy(lock)}
              fields={fieldsIn(field, props.whole)}
              body={objectIn(item)}
              start={{}}
              onChange={(next) => put(items.with(i, next))}
              path={`${path}${field.name}[${i}].`}
            />
          </div>
          {lock !== null ? null : (
            <button type="button" className="btn is-sm" onClick={() => remove(i)}>
              Remove {i + 1}
            </button>
          )}
        </fieldset>
      ))}
      {lock !== null ? null : (
        <div>
          <button type="button" className="btn is-sm" onClick={() => put([...items, {}])}>
            <Icon name="plus" size={12} />
            Add to {labelOf(field.name).toLowerCase()}
          </button>
        </div>
      )}
    </div>
  );
}
