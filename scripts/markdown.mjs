// Reads what the documentation checks need from a Markdown page: its fences, its links, its code spans, its anchors.

/**
 * @typedef {object} Fence
 * @property {string} language The info string's first word; empty when it has none.
 * @property {readonly string[]} flags The info string's other words.
 * @property {string} code
 * @property {number} line The page's line on which the code begins.
 */

/** @typedef {{ text: string, line: number }} Found */

/** @returns {Fence[]} Every fenced block, in order; an unclosed one runs to the end of the page, as in CommonMark. */
export function fencesOf(/** @type {string} */ markdown) {
  return scan(markdown).fences;
}

/** @returns {Found[]} The targets of all links, images and reference definitions outside code. */
export function linksOf(/** @type {string} */ markdown) {
  const prose = scan(markdown).prose.replace(/(`+)[^`][\s\S]*?\1/g, blank);
  return [
    ...matches(prose, /\]\(\s*<?([^)\s>]+)/g),
    ...matches(prose, /^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)/gm),
    ...matches(prose, /\b(?:href|src)="([^"]+)"/g),
  ];
}

/** @returns {Found[]} Inline code outside fences. */
export function codeSpansOf(/** @type {string} */ markdown) {
  return matches(scan(markdown).prose, /(?<!`)(?:`{2}(?!`)\s?([\s\S]+?)\s?(?<!`)`{2}|`([^`]+)`)(?!`)/g);
}

/** @returns {Set<string>} The anchors a link may point at: headings, as GitHub names them, and explicit ids. */
export function anchorsOf(/** @type {string} */ markdown) {
  const { prose } = scan(markdown);
  const anchors = new Set(matches(prose, /\b(?:id|name)="([^"]+)"/g).map(({ text }) => text));
  for (const { text } of matches(prose, /^ {0,3}#{1,6}\s+(.+?)\s*#*$/gm)) {
    const slug = text
      .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-');
    let anchor = slug;
    for (let copy = 1; anchors.has(anchor); copy++) anchor = `${slug}-${copy}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Splits a page into fences and prose; in the prose every fence line is blank, so lines keep their numbers. */
function scan(/** @type {string} */ markdown) {
  /** @type {Fence[]} */
  const fences = [];
  /** @type {string[]} */
  const prose = [];
  /** @type {{ indent: string, marker: string, info: string, code: string[], line: number } | undefined} */
  let open;
  const close = () => {
    if (!open) return;
    const [language = '', ...flags] = open.info.split(/\s+/);
    fences.push({ language, flags, code: open.code.join('\n'), line: open.line });
    open = undefined;
  };

  for (const [index, line] of markdown.split(/\r?\n/).entries()) {
    const [, indent = '', marker = '', info = ''] = /^([\s>]*)(`{3,}|~{3,})(.*)$/.exec(line) ?? [];
    prose.push(open || marker ? '' : line);
    if (open) {
      const closes = marker.startsWith(open.marker) && info.trim() === '';
      if (closes) close();
      else open.code.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line.trimStart());
    } else if (marker && !info.includes('`')) {
      open = { indent, marker, info: info.trim(), code: [], line: index + 2 };
    }
  }
  close();
  return { fences, prose: prose.join('\n') };
}

/** @returns {Found[]} The first filled capture of every match, with its line. */
function matches(/** @type {string} */ text, /** @type {RegExp} */ pattern) {
  return [...text.matchAll(pattern)].map((match) => ({
    text: match.slice(1).find((capture) => capture !== undefined) ?? '',
    line: text.slice(0, match.index).split('\n').length,
  }));
}

function blank(/** @type {string} */ text) {
  return text.replace(/[^\n]/g, ' ');
}
