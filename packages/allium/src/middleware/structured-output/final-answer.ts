/**
 * The final answer as a tool call, for models without a JSON mode, and answers that aren't objects. They are turned into the
 * plain JSON text as they stream in, so that guards, history, repairs and readers see one kind of answer.
 */

import {
  type JsonSchema,
  type ModelPart,
  type ModelSettings,
  type StreamTransform,
  type Tool,
  tool,
} from '../../index.js';
import { isRecord } from '../../kit/index.js';

/**
 * The tool a model gives its final answer with. It is never executed. The tag tells others that a model which may call
 * no tools any more may still call this one.
 */
export function finalAnswerTool(name: string, schema: JsonSchema): Tool {
  const inputSchema = asObject(schema);
  return tool({
    name,
    tags: ['final-answer'],
    description: 'Gives your final answer. Call it once, when you are done, and say nothing beside it.',
    input: {
      '~standard': {
        version: 1,
        vendor: 'allium',
        validate: (value: unknown) => ({ value }),
        jsonSchema: { input: () => ({ ...inputSchema }) },
      },
    },
    execute: () => 'Noted.',
  });
}

/**
 * Arguments are objects, and providers take only objects as answers. So an answer that isn't one, or may not be one, is
 * wrapped in one.
 */
function isWrapped({ type }: JsonSchema): boolean {
  return type !== 'object';
}

export function asObject(schema: JsonSchema): JsonSchema {
  return isWrapped(schema) ? wrapped(schema) : schema;
}

/** References keep pointing to the same places. */
function wrapped(given: JsonSchema): JsonSchema {
  const { $id, $defs, definitions, ...schema } = moved(given) as JsonSchema;
  return {
    ...($id !== undefined && { $id }),
    type: 'object',
    properties: { value: schema },
    required: ['value'],
    additionalProperties: false,
    ...(isRecord($defs) && { $defs }),
    ...(isRecord(definitions) && { definitions }),
  };
}

/** With references to the root, and into it, changed to where it will be. Its id and definitions stay at the root. */
function moved(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(moved);
  if (!isRecord(part)) return part;
  const entries = Object.entries(part).map(([key, value]) =>
    key === '$ref' && typeof value === 'string'
      ? [key, value.replace(/^#(?=\/(?!(?:\$defs|definitions)\/)|$)/, '#/properties/value')]
      : [key, moved(value)],
  );
  return Object.fromEntries(entries);
}

/** A model that may also answer in prose might do just that. */
export function demanding(settings: ModelSettings, name: string): ModelSettings {
  const { toolChoice = 'auto' } = settings;
  if (toolChoice === 'auto') return { ...settings, toolChoice: 'required' };
  return toolChoice === 'none' ? { ...settings, toolChoice: { tool: name } } : settings;
}

/** Undoes what `demanding` did. */
export function undemanding(settings: ModelSettings): ModelSettings {
  const { toolChoice, ...rest } = settings;
  return typeof toolChoice === 'object' ? { ...rest, toolChoice: 'none' } : rest;
}

/**
 * Turns the call into text. Prose before it is held back: it is dropped if the call comes, since it would spoil the JSON, and
 * shown in its place if another call comes or none does.
 */
export function answerAsText(name: string, wrapped: boolean): StreamTransform {
  let held: ModelPart[] | undefined = [];
  /** The current call; only the first one counts. */
  let answering: string | undefined;
  const extra = new Set<string>();
  const unwrap = wrapped ? unwrapper() : undefined;
  const release = (emit: (part: ModelPart) => void): void => {
    for (const part of held ?? []) emit(part);
    held = undefined;
  };
  const say = (json: string, emit: (part: ModelPart) => void): void => {
    const text = unwrap ? unwrap.take(json) : json;
    if (text !== '') emit({ type: 'text', text });
  };
  return {
    part(part, emit) {
      if (part.type === 'text') {
        if (held) held.push(part);
        else if (answering === undefined) emit(part);
      } else if (part.type === 'tool-call' && part.name === name) {
        held = undefined;
        if (answering !== undefined) {
          extra.add(part.id);
          return;
        }
        answering = part.id;
        say(part.arguments, emit);
      } else if (part.type === 'tool-call-delta' && (part.id === answering || extra.has(part.id))) {
        if (part.id === answering) say(part.arguments, emit);
      } else {
        if (part.type === 'tool-call') release(emit);
        emit(part);
      }
    },
    end: release,
  };
}

/** Takes the wrapper off an answer in text. Text without one stays as it is. */
export function unwrappedText(): StreamTransform {
  type Block = Extract<ModelPart, { type: 'text' }>['block'];
  let open: { readonly block: Block; readonly unwrap: Unwrapper } | undefined;
  const close = (emit: (part: ModelPart) => void): void => {
    const { block, unwrap } = open ?? {};
    open = undefined;
    const text = unwrap?.rest();
    if (text) emit({ type: 'text', text, ...(block !== undefined && { block }) });
  };
  return {
    part(part, emit) {
      if (part.type !== 'text') {
        emit(part);
        return;
      }
      if (open && open.block !== part.block) close(emit);
      open ??= { block: part.block, unwrap: unwrapper() };
      const text = open.unwrap.take(part.text);
      const { end } = part;
      if (end) close(emit);
      if (text !== '' || Object.keys(part).length > 2) emit({ ...part, text });
    },
    end: close,
  };
}

const LEAD = /^\s*\{\s*"value"\s*:\s*/;
/** What may still become the beginning of the wrapper. */
const NEARLY = /^\s*(?:\{\s*(?:"(?:v(?:a(?:l(?:u(?:e(?:"\s*(?::\s*)?)?)?)?)?)?)?)?)?$/;

interface Unwrapper {
  /** Takes the JSON of `{ "value": … }` piece by piece and returns that of the value. */
  take(piece: string): string;
  /** What it still holds of a text that turned out to have no wrapper. */
  rest(): string;
}

function unwrapper(): Unwrapper {
  let begun: 'plain' | 'inside' | undefined;
  let kept = '';
  return {
    take(piece) {
      kept += piece;
      if (begun === undefined) {
        const lead = LEAD.exec(kept);
        // More white space may follow the colon.
        if (lead ? lead[0].length === kept.length : NEARLY.test(kept)) return '';
        begun = lead ? 'inside' : 'plain';
        kept = lead ? kept.slice(lead[0].length) : kept;
      }
      // The last brace is the wrapper's, if nothing follows it.
      const end = begun === 'inside' ? kept.search(/\s*(?:\}\s*)?$/) : kept.length;
      const said = kept.slice(0, end);
      kept = kept.slice(end);
      return said;
    },
    rest: () => (begun === undefined ? kept : ''),
  };
}
