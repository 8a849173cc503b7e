/** Signs that tell who speaks, where a text begins anew, and what is code. */

/** `System:` and the like at the beginning of a line. */
export const ROLE_LINE =
  /[\s>*#"'[({-]*(?:system|assistant|developer|admin|administrator|root|operator|human|user)(?: (?:message|note|notice|override|update|alert|prompt|command|instructions?))?(?: ?[\])}>*"']{1,3})? ?:/y;

/** Borders of turns and roles, as templates of models have them. */
export const TAG =
  /<{1,2}\|? ?\/?(?:im_start|im_end|im_sep|system|sys|endoftext|assistant|user|human|start_header_id|end_header_id|eot_id|inst|instructions?|system[ _-]?(?:prompt|message|note|instructions?|override|update)|prompt|admin|important|tool[_-]?(?:result|response|output|call)s?|function[_-]?(?:results?|calls?)|user[_-]?(?:input|query|message)|developer|override|context|document|data|thinking|secret)\b[^<>\n]{0,40}>{1,2}|\[\/?(?:inst|system(?:[ _-]?[a-z]{1,20}){0,2}|sys|assistant|admin(?: [a-z]{1,20}){0,2}|developer|override|important|hidden|instructions?|end of [a-z ]{1,30}|ai[ :-][^\]\n]{0,40})\]|\{\{?#? ?(?:system|assistant|user|override|instructions?|jailbreak)\b[^{}\n]{0,24}\}\}?|"role" ?: ?"(?:system|developer|assistant)"/y;

/** A line that ends one thing and begins another. */
export const BORDER =
  /(?:#{2,}|={3,}|-{3,}|\*{3,}|~{3,}|_{3,}|>{3,}|<{3,}|\/{3,}) {0,2}\[? ?(?:end|begin|start|stop|new|system|admin|override|important|instruct\w*|actual|real|user|assistant|prompt|task|ignore|response|document|context)\b/y;

/**
 * The name of a member in JSON, also in JSON inside of a text, or in a dictionary of Python, up to its value, where that is
 * text. Longer names may be sentences themselves.
 */
export const MEMBER =
  /"[\w.$@]{1,40}(?:[ -]\w{1,20})?\\{0,3}" ?: ?\\{0,3}"?|(?<=[{,] ?)'[\w.$@]{1,40}(?:[ -]\w{1,20})?' ?: ?(?:'|(?="))/y;

/** Its value in a tag: some words. */
export const ATTRIBUTE =
  /\b(?:title|alt|content|placeholder|summary|label|value|data-[\w-]+|aria-[\w-]+) ?= ?"([^"<>]*? [^"<>]*? [^"<>]*)/g;

/** A tag of HTML. */
export const MARKUP = /<[/a-z!][^<>]{0,300}>/y;

/** What hides an element from readers. */
export const UNSEEN =
  /display: ?none|visibility: ?hidden|font-size: ?[01](?:px|pt|em)?\b|opacity: ?0(?:\D|$)|color: ?(?:white|#fff\b|#ffffff|transparent)|\bhidden\b|aria-hidden|height: ?0|left: ?-\d{3,}/;

/** A verb that tells, as in `ignores`, `overriding rules` and `forgot`; not as in `pass`. */
export const TOLD = /^(?:\w+(?:[^s]s|ed|ing)|told|forgot|sent|wrote|gave|said)\b/;

export const CODE =
  /=>|\(\)|\);|[!=]==|\b(?:const|let|var|function|return|import|export|class|def|select|throw) |\w\(|--\w|`|\*\/|\/\*|^\s*(?:\/\/|\$ )|\w_\w|\.\w{2,4}\b(?!\/)/;
