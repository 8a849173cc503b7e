/** Turns the parts of an AI SDK stream into ours. One mapper per stream. */
import type { Metadata, ModelPart } from 'allium';
import { digestOf } from './digest.js';
import { isObject, jsonCopy, type Loose } from './language-model.js';
import { mergeOptions, type ProviderOptions } from './provider-options.js';
import { takeSeal } from './seal.js';
import { finishOf, usageOf } from './usage.js';

/** A block of text or thinking that grows. */
interface OpenBlock {
  readonly type: 'text' | 'thinking';
  readonly key: number;
  /** Its text so far, for the digest. */
  text: string;
  provider: ProviderOptions | undefined;
  /** Something of it was emitted. */
  shown: boolean;
}

/** A call whose arguments stream. */
interface OpenCall {
  readonly name: string;
  /** Its pieces are passed on as they come; otherwise it waits until it is complete. */
  readonly live: boolean;
  arguments: string;
  provider: ProviderOptions | undefined;
}

/** Metadata of calls that was known only after they had begun. In the order of the calls. */
export interface CallMetadata {
  readonly id: string;
  readonly provider: ProviderOptions;
  readonly digest: string;
}

/** What the adapter keeps in `metadata.aiSdk` of an assistant message. */
export interface AiSdkMetadata {
  readonly warnings?: readonly unknown[];
  readonly reasoningTokens?: number;
  /** In the provider's own words. */
  readonly finishReason?: string;
  readonly response?: { readonly id?: string; readonly modelId?: string; readonly timestamp?: string };
  /** What the provider reported about the answer as a whole. */
  readonly providerMetadata?: ProviderOptions;
  readonly calls?: readonly (CallMetadata | null)[];
  /** How many blocks of thinking came with metadata. */
  readonly thinking?: number;
}

export interface MapperOptions {
  /** Names of the tools that are ours to run. */
  readonly tools: ReadonlySet<string>;
  readonly acceptUnfinished: boolean;
  /** Called with warnings as soon as they come: before the answer, whose metadata has them at its end. */
  readonly onWarnings?: (warnings: readonly unknown[]) => void;
  /** Called with the counts, as they are. */
  readonly onUsage?: (usage: unknown) => void;
}

type Emit = (part: ModelPart) => void;

export class PartMapper {
  /** The stream has come to its end. */
  finished = false;
  private readonly blocks = new Map<string, OpenBlock>();
  /** Blocks that have ended. That only matters when another one begins, so it is reported then. */
  private readonly ended: OpenBlock[] = [];
  private readonly calls = new Map<string, OpenCall>();
  private readonly late: (CallMetadata | null)[] = [];
  private count = 0;
  private sealed = 0;
  private early = false;
  private warnings: readonly unknown[] | undefined;
  private response: AiSdkMetadata['response'];

  constructor(
    private readonly options: MapperOptions,
    private readonly emit: Emit,
  ) {}

  /** Takes a part and emits the corresponding ones. What a provider reports as an error is thrown, as it is. */
  take(part: unknown): void {
    if (!isObject(part)) return;
    switch (part.type) {
      case 'text-delta':
        this.grow('text', part);
        break;
      case 'reasoning-delta':
        this.grow('thinking', part);
        break;
      case 'tool-input-delta':
        this.growCall(part);
        break;
      case 'text-start':
        this.open('text', part);
        break;
      case 'reasoning-start':
        this.open('thinking', part);
        break;
      case 'text-end':
        this.end('text', part);
        break;
      case 'reasoning-end':
        this.end('thinking', part);
        break;
      case 'tool-input-start':
        this.openCall(part);
        break;
      case 'tool-input-end':
        this.note(this.calls.get(String(part.id)), part);
        break;
      case 'tool-call':
        this.call(part);
        break;
      case 'file':
        this.file(part);
        break;
      case 'error':
        if (!endedEarly(part.error)) throw part.error;
        this.early = true;
        break;
      case 'stream-start':
        if (!Array.isArray(part.warnings) || part.warnings.length === 0) break;
        this.warnings = jsonCopy(part.warnings) as readonly unknown[];
        this.options.onWarnings?.(this.warnings);
        break;
      case 'response-metadata': {
        const { type: _, ...rest } = part;
        this.response = jsonCopy(rest) as AiSdkMetadata['response'];
        break;
      }
      case 'finish':
        this.finish(part);
        break;
      case 'ping':
      case 'raw':
        break;
      default:
        this.other(part);
    }
  }

  private grow(type: OpenBlock['type'], part: Loose): void {
    const id = String(part.id);
    const block = this.blocks.get(type + id) ?? this.begin(type, id);
    if (part.providerMetadata !== undefined) this.note(block, part);
    const text = part.delta as string;
    if (text === '') return;
    block.text += text;
    block.shown = true;
    this.emit({ type, text, block: block.key });
  }

  /** Thinking without text that hasn't ended keeps its place before what comes now: providers insist on the order. */
  private keepPlaces(): void {
    for (const block of this.blocks.values()) {
      if (block.type !== 'thinking' || block.shown || !block.provider) continue;
      block.shown = true;
      this.emit({ type: 'thinking', text: '', block: block.key });
    }
  }

  private open(type: OpenBlock['type'], part: Loose): void {
    const id = String(part.id);
    // An id may be reused for another block.
    if (this.blocks.has(type + id)) this.close(type, id);
    this.note(this.begin(type, id), part);
  }

  private begin(type: OpenBlock['type'], id: string): OpenBlock {
    for (const { type: kind, key } of this.ended.splice(0))
      this.emit({ type: kind, text: '', block: key, end: true });
    this.keepPlaces();
    const block: OpenBlock = { type, key: this.count++, text: '', provider: undefined, shown: false };
    this.blocks.set(type + id, block);
    return block;
  }

  private end(type: OpenBlock['type'], part: Loose): void {
    const id = String(part.id);
    this.note(this.blocks.get(type + id), part);
    this.close(type, id);
    if (!Array.isArray(part.citations)) return;
    for (const citation of part.citations)
      this.emit({ type: 'provider', kind: 'citation', value: jsonCopy(citation) });
  }

  /** Metadata of a block is emitted when all of it is known. */
  private close(type: OpenBlock['type'], id: string): void {
    const block = this.blocks.get(type + id);
    this.blocks.delete(type + id);
    if (!block) return;
    if (!block.provider) {
      if (block.text !== '') this.ended.push(block);
      return;
    }
    if (type === 'thinking') this.sealed++;
    const sealed = type === 'thinking' ? takeSeal(block.provider) : undefined;
    const { provider, seal, signature } = sealed ?? { provider: block.provider };
    const metadata: Metadata = { provider, digest: digestOf(block.text), ...(seal && { seal }) };
    const plain = { text: '', block: block.key, metadata, end: true };
    if (type === 'text') this.emit({ type, ...plain });
    else this.emit({ type, ...plain, signature, ...(seal?.[1] === 'redactedData' && { redacted: true }) });
  }

  private note(open: { provider: ProviderOptions | undefined } | undefined, part: Loose): void {
    if (open && part.providerMetadata !== undefined)
      open.provider = mergeOptions(open.provider, part.providerMetadata);
  }

  private openCall(part: Loose): void {
    const [id, name] = [String(part.id), String(part.toolName)];
    // A call that the provider runs itself isn't ours, and plain text isn't JSON: both wait until they are complete.
    const live =
      this.options.tools.has(name) && part.providerExecuted !== true && part.inputEncoding !== 'text';
    const provider = mergeOptions(undefined, part.providerMetadata);
    this.calls.set(id, { name, live, arguments: '', provider });
    if (!live) return;
    this.keepPlaces();
    this.emit({ type: 'tool-call', id, name, arguments: '' });
  }

  private growCall(part: Loose): void {
    const [id, piece] = [String(part.id), part.delta as string];
    const call = this.calls.get(id);
    if (!call) return;
    if (part.providerMetadata !== undefined) this.note(call, part);
    if (piece === '') return;
    call.arguments += piece;
    if (call.live) this.emit({ type: 'tool-call-delta', id, arguments: piece });
  }

  private call(part: Loose): void {
    const [id, name, input] = [String(part.toolCallId), String(part.toolName), textOf(part.input) || '{}'];
    const open = this.calls.get(id);
    this.calls.delete(id);
    if (part.providerExecuted === true) {
      this.other(part);
      return;
    }
    const provider = mergeOptions(open?.provider, part.providerMetadata);
    if (!open?.live) {
      const metadata = provider && { provider, digest: digestOf(input) };
      this.late.push(null);
      this.keepPlaces();
      this.emit({ type: 'tool-call', id, name, arguments: input, ...(metadata && { metadata }) });
      return;
    }
    // Some provider packages tidy up what the model wrote; what streamed is the original.
    const rest = input.startsWith(open.arguments) ? input.slice(open.arguments.length) : '';
    if (rest !== '') this.emit({ type: 'tool-call-delta', id, arguments: rest });
    this.late.push(provider ? { id, provider, digest: digestOf(open.arguments + rest) } : null);
  }

  private file(part: Loose): void {
    const mimeType = String(part.mediaType);
    const provider = mergeOptions(undefined, part.providerMetadata);
    this.keepPlaces();
    this.emit({
      type: 'file',
      data: dataOf(part.data),
      mimeType,
      ...(provider && { metadata: { provider } }),
    });
  }

  /** Sources, tools that the provider ran, and whatever later versions bring. */
  private other({ type, providerMetadata, ...rest }: Loose): void {
    if (rest.preliminary === true) return;
    const provider = mergeOptions(undefined, providerMetadata);
    const value = type === 'reasoning-file' ? { ...rest, data: dataOf(rest.data) } : rest;
    this.keepPlaces();
    this.emit({
      type: 'provider',
      kind: String(type),
      value: jsonCopy(value),
      ...(provider && { metadata: { provider } }),
    });
  }

  private finish({ finishReason, usage: given, providerMetadata }: Loose): void {
    this.finished = true;
    for (const block of [...this.blocks.keys()]) {
      const type = block.startsWith('text') ? 'text' : 'thinking';
      this.close(type, block.slice(type.length));
    }
    if (isObject(given)) this.options.onUsage?.(given);
    const { usage, reasoningTokens } = usageOf(given, providerMetadata);
    const { reason, raw, cut } = finishOf(finishReason, usage.outputTokens);
    // Without our `finish` part the answer counts as cut off, and can be tried again.
    if ((cut || this.early) && !this.options.acceptUnfinished) return;
    const provider = mergeOptions(undefined, providerMetadata);
    const aiSdk: AiSdkMetadata = {
      ...(this.warnings && { warnings: this.warnings }),
      ...(reasoningTokens !== undefined && { reasoningTokens }),
      ...(raw !== undefined && { finishReason: raw }),
      ...(this.response && { response: this.response }),
      ...(provider && { providerMetadata: provider }),
      ...(this.late.some((one) => one !== null) && { calls: this.late }),
      ...(this.sealed > 0 && { thinking: this.sealed }),
    };
    const metadata = Object.keys(aiSdk).length > 0 && { metadata: { aiSdk } };
    this.emit({ type: 'finish', reason: this.early ? 'other' : reason, usage, ...metadata });
  }
}

/** Some packages report an answer without a finish reason as an error, which only its message shows. */
function endedEarly(error: unknown): boolean {
  if (!isObject(error) || error.name !== 'AI_InvalidResponseDataError') return false;
  return /without a finish reason/.test(String(error.message));
}

/** Input is JSON text by the specification; some fakes and packages pass the value. */
function textOf(input: unknown): string {
  return typeof input === 'string' ? input : (JSON.stringify(input) ?? '');
}

/** Base64 text or an address. */
function dataOf(data: unknown): string {
  if (typeof data === 'string') return data;
  if (data instanceof Uint8Array)
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
  if (data instanceof URL) return data.href;
  if (isObject(data)) return dataOf(data.type === 'url' ? data.url : data.data);
  return '';
}
