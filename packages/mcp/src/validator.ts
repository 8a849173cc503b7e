/** Checks values against schemas of a server, which may be wrong or hostile. */

import type { JsonSchemaType, JsonSchemaValidator, jsonSchemaValidator } from '@modelcontextprotocol/client';
import type { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv';
import { withMembers } from './schema-members.js';

type Ajv = typeof AjvJsonSchemaValidator;
type Check = ReturnType<jsonSchemaValidator['getValidator']>;

/**
 * Checks arguments. Throws for a schema that isn't one: a provider would refuse it, and with it the whole request. Regular
 * expressions and formats are left out: a server could send an expression that takes hours for a short text, and nothing
 * else would run meanwhile. The model still sees them, and the server checks its arguments itself.
 */
export function inputValidator(Ajv: Ajv): jsonSchemaValidator {
  const shared = new Ajv();
  return {
    getValidator<T>(schema: JsonSchemaType) {
      const safe = plain(schema) as JsonSchemaType;
      const { valid, errorMessage } = dialectOf(safe, Ajv)(safe);
      if (!valid) throw new Error(`its schema is wrong: ${errorMessage?.split(', ')[0]}`);
      // Ajv takes schemas with the same `$id` for the same.
      const ajv = JSON.stringify(safe).includes('"$id"') ? new Ajv() : shared;
      return ajv.getValidator<T>(safe);
    },
  };
}

/** Checks results, and answers to forms. A schema that can't be used checks nothing: what it is about is there. */
export function outputValidator(Ajv: Ajv): jsonSchemaValidator {
  // The library asks again for every call.
  const known = new WeakMap<object, Check>();
  return {
    getValidator<T>(schema: JsonSchemaType) {
      const check = known.get(schema) ?? made(schema);
      known.set(schema, check);
      return check as JsonSchemaValidator<T>;
    },
  };

  function made(schema: JsonSchemaType): Check {
    try {
      // An Ajv never forgets a schema, and a connection may see many lists of tools.
      return new Ajv().getValidator(plain(schema) as JsonSchemaType);
    } catch {
      return (data) => ({ valid: true, data: data as never, errorMessage: undefined });
    }
  }
}

const DRAFT_2020 = 'https://json-schema.org/draft/2020-12/schema';
const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';

/** What schemas have to look like, by the dialect they are written in. */
const dialects = new Map<string, Check>();

function dialectOf({ $schema = DRAFT_2020 }: JsonSchemaType, Ajv: Ajv): Check {
  const dialect = /draft-0[67]/.test($schema) ? DRAFT_07 : $schema;
  const check = dialects.get(dialect) ?? new Ajv().getValidator({ $schema: dialect, $ref: dialect });
  dialects.set(dialect, check);
  return check;
}

/** Without the patterns, nobody can say which members are the others. */
const OTHERS = ['additionalProperties', 'unevaluatedProperties'];

function plain(schema: unknown): unknown {
  return withMembers(schema, (members) => {
    const left = [
      'pattern',
      'format',
      ...('patternProperties' in members ? ['patternProperties', ...OTHERS] : []),
    ];
    return Object.fromEntries(Object.entries(members).filter(([name]) => !left.includes(name)));
  });
}
