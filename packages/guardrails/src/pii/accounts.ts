/** Finds the numbers of cards and bank accounts. */
import { before, type Finding, isDigit, isWordCode } from '../scan/finding.js';
import { luhn, mod97 } from './checksums.js';

/** Bare digits, and digits in groups as they are printed: 4-4-4-4(-3), 4-6-5, 4-6-4, 4-4-4-x and 6 + the rest. */
const CARDS = [
  /\d{12,19}(?!\d)/y,
  /\d{4}([ .\u00a0-])\d{4}\1\d{4}\1\d{4}\1\d{3}(?!\d)/y,
  /\d{4}([ .\u00a0-])\d{4}\1\d{4}\1\d{1,4}(?!\d)/y,
  /\d{4}([ .\u00a0-])\d{6}\1\d{4,5}(?!\d)/y,
  /\d{6}([ -])\d{10,13}(?!\d)/y,
];

/** First digits and lengths of the networks. */
const NETWORKS: readonly (readonly [RegExp, readonly number[]])[] = [
  [/^4/, [13, 16, 19]],
  [/^5[1-5]|^2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)/, [16]],
  [/^3[47]/, [15]],
  [/^6(?:011|4[4-9]|5)/, [16, 17, 18, 19]],
  [/^3(?:0[0-5]|[689])/, [14, 16]],
  [/^35(?:2[89]|[3-8])/, [16, 17, 18, 19]],
  [/^62|^81/, [16, 17, 18, 19]],
  [/^(?:5018|5020|5038|5893|6304|6759|676[1-3])/, [12, 13, 14, 15, 16, 17, 18, 19]],
  [/^220[0-4]/, [16, 17, 18, 19]],
];

const CARD_WORDS =
  /card|visa|master\s?card|amex|american express|discover|maestro|diners|jcb|unionpay|\bcc\b|credit|debit|payment|pay with|charge|karte|carte|tarjeta|carta|cvv|exp/;

/** Words right before numbers that pass the check digit by chance, or have the same one (IMEI). */
const OTHER_NUMBERS =
  /(?:order|invoice|tracking|track|parcel|shipment|shipping|delivery|package|serial|s\/n|\bsn|imei|iccid|meid|ticket|case|reference|ref|sku|upc|ean|gtin|isbn|barcode|batch|\blot|part|model|asset|device|meter|build|commit|hash|timestamp|epoch|nonce|trace|span|request|correlation|session|transaction|txn|\bids?|uuid|guid|offset|seed|checksum|size|bytes|version|booking|confirmation|reservation|policy|claim|member|vehicle|vin|registration|licen[cs]e|coupon|voucher|bestellung|bestellnummer|rechnung|sendung|auftrag|commande|facture|pedido|factura|ordine|fattura)(?:[\s_-]{0,2}(?:no|num|number|nummer|nr|id|code|key|was|is|of|numéro|número))*[\s:=#"'(.[-]{0,4}$/;

/** The card number that begins at a digit, or undefined. */
export function cardAt(text: string, start: number): Finding | undefined {
  for (const pattern of CARDS) {
    pattern.lastIndex = start;
    const match = pattern.exec(text);
    if (match && isCard(text, start, pattern.lastIndex, match[1] !== undefined))
      return { start, end: pattern.lastIndex, kind: 'credit-card' };
  }
  return undefined;
}

function isCard(text: string, start: number, end: number, grouped: boolean): boolean {
  const digits = text.slice(start, end).replace(/\D/g, '');
  if (!isApart(text, start, end) || !isOfNetwork(digits) || !luhn(digits)) return false;
  if (/^(\d)\1+$/.test(digits)) return false;
  const head = before(text, start, 48);
  if (OTHER_NUMBERS.test(head)) return false;
  // Bare digits inside something technical: `x=…`, `/…`.
  return grouped || CARD_WORDS.test(head) || !/[=/#&?_]["']?$/.test(head);
}

function isOfNetwork(digits: string): boolean {
  return NETWORKS.some(([begins, lengths]) => lengths.includes(digits.length) && begins.test(digits));
}

/** Not a part of a longer number, word or path. */
function isApart(text: string, start: number, end: number): boolean {
  const previous = text.charCodeAt(start - 1);
  const next = text.charCodeAt(end);
  if (isWordCode(previous) || isWordCode(next)) return false;
  // Decimals (`1.4111…`) and longer codes (`A-4111…-7`).
  if (previous === 46 && isDigit(text.charCodeAt(start - 2))) return false;
  if (previous === 45 && isWordCode(text.charCodeAt(start - 2))) return false;
  return !((next === 46 || next === 45) && isDigit(text.charCodeAt(end + 1)));
}

/** Lengths of account numbers by country, from the registry of ISO 13616. */
const IBAN_LENGTHS: Readonly<Record<string, number>> = Object.fromEntries(
  'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30'
    .split(' ')
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
);

/** The account number whose check digits begin at `digit`, behind two letters; or undefined. */
export function ibanAt(text: string, digit: number): Finding | undefined {
  const start = digit - 2;
  if (start < 0 || isWordCode(text.charCodeAt(start - 1))) return undefined;
  const length = IBAN_LENGTHS[text.slice(start, digit).toUpperCase()];
  if (length === undefined) return undefined;
  let plain = '';
  let end = start;
  // Groups may be separated by one space or dash each.
  for (let place = start; plain.length < length && place < text.length; place++) {
    const code = text.charCodeAt(place);
    if (code === 32 || code === 45 || code === 0xa0) {
      if (!isWordCode(text.charCodeAt(place + 1))) return undefined;
      continue;
    }
    if (!isWordCode(code) || code === 95 || code > 122) return undefined;
    plain += text[place]!.toUpperCase();
    end = place + 1;
  }
  if (plain.length < length || isWordCode(text.charCodeAt(end))) return undefined;
  return mod97(plain.slice(4) + plain.slice(0, 4)) === 1 ? { start, end, kind: 'iban' } : undefined;
}
