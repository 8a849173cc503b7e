/** Makes foreign text safe for a terminal: control and hidden characters are spelled out. */
import { invalidOption } from '../kernel/lib/errors.js';

/**
 * Characters that don't look like what they are: controls (C0, DEL, C1), marks that turn the direction of writing,
 * characters without width, and separators that only some programs break lines at. Tabs and line breaks are fine.
 */
const HIDDEN = String.raw`(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]`;

/** Scripts that are written with joiners and invisible breaks between their letters. */
const JOINING = `[${[
  'Arabic Syriac Nko Mongolian Thai Lao Khmer Myanmar',
  'Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala',
]
  .join(' ')
  .split(' ')
  .map((script) => `\\p{Script=${script}}`)
  .join('')}]`;

/** Where such characters belong to ordinary writing: emoji made of several, and the scripts above. */
const ORDINARY = [
  String.raw`\p{Extended_Pictographic}[\ufe0e\ufe0f\p{Emoji_Modifier}]?(?:\u200d\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?)*(?:[\u{e0061}-\u{e007a}]{5,6}\u{e007f})?`,
  String.raw`[0-9#*]\ufe0f\u20e3`,
  String.raw`(?<=${JOINING})[\u200b-\u200d](?=${JOINING})`,
  String.raw`(?<=\p{Script=Han})[\u{e0100}-\u{e01ef}]`,
].join('|');

/** Most texts have only these characters, none of which is hidden. Building the patterns for others takes a millisecond. */
const PLAIN = /^[\t\n -~\xa1-\xac\xae-\u02ff\u2010-\u2027]*$/;

/**
 * Shows a text as it is, for terminals and logs: escape sequences do nothing, and characters that turn or hide others
 * are visible (`<U+202E>`). Line breaks and tabs stay, and so do emoji and joiners where a script needs them.
 *
 * @example
 * console.log(terminalText(`the model calls ${name}`));
 */
export function terminalText(text: string): string {
  if (typeof text !== 'string') throw invalidOption('text', 'text', text);
  if (PLAIN.test(text) || !new RegExp(HIDDEN, 'u').test(text)) return text;
  return text
    .replaceAll('\r\n', '\n')
    .replace(new RegExp(`${ORDINARY}|(?<hidden>${HIDDEN})`, 'gu'), (found, hidden: string | undefined) =>
      hidden === undefined ? found : spelled(hidden),
    );
}

/** Shows JSON on terminals and in logs: hidden characters become `\uXXXX`, so programs read the same value. */
export function terminalJson(json: string): string {
  if (typeof json !== 'string') throw invalidOption('json', 'text', json);
  if (PLAIN.test(json)) return json;
  return json.replace(new RegExp(HIDDEN, 'gu'), (found) => {
    const units = Array.from({ length: found.length }, (_, i) => found.charCodeAt(i));
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
  });
}

function spelled(character: string): string {
  return `<U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}>`;
}
