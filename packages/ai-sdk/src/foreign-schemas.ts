/** Schemas of tools made for other libraries, as those an agent's tools have. */

import type { JsonSchema, StandardSchema } from 'allium';
import { isStandardSchema, messageOf } from 'allium/kit';
import type { Loose } from './language-model.js';
import { isZod3, zod3JsonSchema } from './zod-3.js';

type Validate = StandardSchema<Loose>['~standard']['validate'];

/** Undefined if it isn't a schema that says what its JSON Schema is. `fail` makes the error for one that JSON Schema can't express. */
export function schemaOf(
  given: unknown,
  fail: (what: string, value: unknown) => Error,
): StandardSchema<Loose> | undefined {
  if (isZod3(given)) {
    try {
      return schemaFrom(zod3JsonSchema(given), async (value) => {
        const { success, data, error } = await given.safeParseAsync(value);
        return success ? { value: data as Loose } : { issues: error!.issues };
      });
    } catch (error) {
      throw fail(`a schema that JSON Schema can express (${messageOf(error)})`, given);
    }
  }
  const schema = isStandardSchema(given) ? (given as StandardSchema<Loose>) : undefined;
  return schema?.['~standard'].jsonSchema ? schema : undefined;
}

export function schemaFrom(jsonSchema: JsonSchema, validate: Validate): StandardSchema<Loose> {
  return {
    '~standard': { version: 1, vendor: 'allium', validate, jsonSchema: { input: () => ({ ...jsonSchema }) } },
  };
}
