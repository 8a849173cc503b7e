/** Checks values against schemas of a server, which may be hostile. */

import type { fromJsonSchema, JsonSchemaType, jsonSchemaValidator } from '@modelcontextprotocol/client';
import { isRecord } from 'allium/kit';

/**
 * Leaves the regular expressions of a schema out: a server could send one that takes hours for a short text, and
 * nothing else would run meanwhile. The model still sees them, and the server checks its arguments itself.
 */
export function withoutPatterns(schemaOf: typeof fromJsonSchema): jsonSchemaValidator {
  return {
    getValidator<T>(schema: JsonSchemaType) {
      const { validate } = schemaOf<T>(plain(schema) as JsonSchemaType)['~standard'];
      return (value: unknown) => {
        const checked = validate(value) as Awaited<ReturnType<typeof validate>>;
        return checked.issues
          ? {
              valid: false,
              data: undefined,
              errorMessage: checked.issues.map(({ message }) => message).join(', '),
            }
          : { valid: true, data: checked.value, errorMessage: undefined };
      };
    },
  };
}

/** Members that have schemas by name. */
const BY_NAME = ['properties', '$defs', 'definitions', 'dependentSchemas'];
/** Members that have values. */
const VALUES = ['const', 'enum', 'default', 'examples'];
/** Without the patterns, nobody can say which members are the others. */
const OTHERS = ['additionalProperties', 'unevaluatedProperties'];

function plain(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(plain);
  if (!isRecord(schema)) return schema;
  const left = 'patternProperties' in schema ? ['pattern', 'patternProperties', ...OTHERS] : ['pattern'];
  const members = Object.entries(schema).filter(([name]) => !left.includes(name));
  return Object.fromEntries(
    members.map(([name, member]) => [
      name,
      VALUES.includes(name)
        ? member
        : BY_NAME.includes(name) && isRecord(member)
          ? Object.fromEntries(Object.entries(member).map(([key, one]) => [key, plain(one)]))
          : plain(member),
    ]),
  );
}
