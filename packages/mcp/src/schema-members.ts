/** Walks through a JSON Schema. */

import { isRecord } from 'allium/kit';

type Members = Readonly<Record<string, unknown>>;

/** Members that have schemas by name. */
const BY_NAME = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'];
/** Members that have values. */
const VALUES = ['const', 'enum', 'default', 'examples'];

/** The same schema, in which every schema has the members that `change` returns for its own. */
export function withMembers(schema: unknown, change: (members: Members) => Members): unknown {
  const inside = (one: unknown): unknown => withMembers(one, change);
  if (Array.isArray(schema)) return schema.map(inside);
  if (!isRecord(schema)) return schema;
  return mapped(change(schema as Members), (member, name) => {
    if (VALUES.includes(name)) return member;
    return BY_NAME.includes(name) && isRecord(member) ? mapped(member as Members, inside) : inside(member);
  });
}

function mapped(members: Members, map: (member: unknown, name: string) => unknown): Members {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, map(member, name)]));
}
