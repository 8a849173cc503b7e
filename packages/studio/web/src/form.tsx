/** A form for JSON that follows a JSON Schema. What it has no field for is edited as JSON text. */
import { useId } from 'preact/hooks';

type Schema = Readonly<Record<string, unknown>>;

export interface Fields {
  /** What is wrong with the text of a field, by its path. */
  readonly problems: Map<string, string>;
}

export function SchemaForm({
  schema,
  value,
  onChange,
  path = '',
  fields,
}: {
  readonly schema: Schema;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly path?: string;
  readonly fields: Fields;
}) {
  const properties = propertiesOf(schema);
  if (!properties)
    return <JsonField label="Arguments" value={value} onChange={onChange} path={path} fields={fields} />;
  const object = isObject(value) ? value : {};
  const required = Array.isArray(schema.required) ? (schema.required as string[]) : [];
  // What the schema doesn't name stays in the value, and is shown so that nobody approves it unseen.
  const others = Object.keys(object).filter((key) => !(key in properties));
  return (
    <div class="form">
      {Object.entries(properties).map(([name, one]) => (
        <Field
          key={name}
          name={name}
          schema={one}
          needed={required.includes(name)}
          value={object[name]}
          path={`${path}/${name}`}
          fields={fields}
          onChange={(next) => {
            const { [name]: _, ...rest } = object;
            onChange(next === undefined ? rest : { ...object, [name]: next });
          }}
        />
      ))}
      {others.map((name) => (
        <JsonField
          key={name}
          label={name}
          value={object[name]}
          path={`${path}/${name}`}
          fields={fields}
          onChange={(next) => onChange({ ...object, [name]: next })}
        />
      ))}
    </div>
  );
}

function Field({
  name,
  schema,
  needed,
  value,
  onChange,
  path,
  fields,
}: {
  readonly name: string;
  readonly schema: Schema;
  readonly needed: boolean;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly path: string;
  readonly fields: Fields;
}) {
  const id = useId();
  const type = typeOf(schema);
  const label = (
    <>
      {name}
      {needed ? '' : ' (optional)'}
    </>
  );
  const about = typeof schema.description === 'string' ? <small>{schema.description}</small> : null;
  if (Array.isArray(schema.enum) && schema.enum.every((one) => typeof one === 'string'))
    return (
      <div class="field">
        <label for={id}>{label}</label>
        <select
          id={id}
          value={String(value ?? '')}
          onChange={(event) => onChange(event.currentTarget.value || undefined)}
        >
          {!needed && <option value="">–</option>}
          {(schema.enum as string[]).map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
        {about}
      </div>
    );
  if (type === 'boolean')
    return (
      <div class="field">
        <label class="check" for={id}>
          <input
            id={id}
            type="checkbox"
            checked={value === true}
            onChange={(event) => onChange(event.currentTarget.checked)}
          />
          <span>{label}</span>
        </label>
        {about}
      </div>
    );
  if (type === 'number' || type === 'integer')
    return (
      <div class="field">
        <label for={id}>{label}</label>
        <input
          id={id}
          type="number"
          step={type === 'integer' ? 1 : 'any'}
          value={typeof value === 'number' ? value : ''}
          onInput={(event) => {
            const { value: text } = event.currentTarget;
            onChange(text === '' ? undefined : Number(text));
          }}
        />
        {about}
      </div>
    );
  if (type === 'string')
    return (
      <div class="field">
        <label for={id}>{label}</label>
        <textarea
          id={id}
          rows={String(value ?? '').length > 80 || String(value ?? '').includes('\n') ? 4 : 1}
          value={String(value ?? '')}
          onInput={(event) => {
            const { value: text } = event.currentTarget;
            onChange(text === '' && !needed ? undefined : text);
          }}
        />
        {about}
      </div>
    );
  if (propertiesOf(schema))
    return (
      <fieldset class="field">
        <legend>{label}</legend>
        {about}
        <SchemaForm schema={schema} value={value} onChange={onChange} path={path} fields={fields} />
      </fieldset>
    );
  return <JsonField label={name} value={value} onChange={onChange} path={path} fields={fields} />;
}

function JsonField({
  label,
  value,
  onChange,
  path,
  fields,
}: {
  readonly label: string;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly path: string;
  readonly fields: Fields;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label} (JSON)</label>
      <textarea
        id={id}
        class="code"
        rows={Math.min(12, (JSON.stringify(value, undefined, 2) ?? '').split('\n').length + 1)}
        onInput={(event) => {
          const { value: text } = event.currentTarget;
          try {
            onChange(text.trim() === '' ? undefined : JSON.parse(text));
            fields.problems.delete(path);
          } catch (error) {
            fields.problems.set(path, `${label} is not JSON: ${(error as Error).message}`);
          }
        }}
      >
        {JSON.stringify(value, undefined, 2) ?? ''}
      </textarea>
    </div>
  );
}

function propertiesOf(schema: Schema): Readonly<Record<string, Schema>> | undefined {
  return isObject(schema.properties) ? (schema.properties as Record<string, Schema>) : undefined;
}

function typeOf({ type }: Schema): string | undefined {
  if (typeof type === 'string') return type;
  const types = Array.isArray(type) ? type.filter((one) => one !== 'null') : [];
  return types.length === 1 ? String(types[0]) : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
