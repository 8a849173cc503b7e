// Personal data and what looks like it, generated. Values follow the rules of their issuers, with random numbers; where the
// package `validator` knows a checksum it decides what is valid, so that no detector is measured by its own code. Sentences of
// the report are other ones than those that detectors were tuned with, and so are shapes of hard negatives, where there are
// enough of them.

import { createRequire } from 'node:module';
import { DIGITS, HEX, LOWER, placed, randomFrom, UPPER } from './random.mjs';

const require = createRequire(import.meta.url);
const validator = require('validator');
const { parsePhoneNumberFromString } = require('libphonenumber-js/max');
const EXAMPLES = require('libphonenumber-js/examples.mobile.json');

const NAMES =
  'ann,bob,carla,dmitri,eva,farid,grace,hiro,ines,jonas,kofi,lena,maria,noah,olga,priya,quinn,rosa,sven,tariq,uma,viktor,wei,xenia,yusuf,zoe'.split(
    ',',
  );
const SURNAMES =
  'lee,garcia,müller,nguyen,okafor,petrov,rossi,santos,tanaka,ueda,vega,weber,young,zhang,smith,jones,brown,olsen,kowalski,haddad'.split(
    ',',
  );
const PLACES = ['tune', 'report'];

/** Sentences with a place for a value, for any type; `{}` is the value. */
const SENTENCES = {
  tune: [
    'Please send it to {} before Friday.',
    'My details: {}, thanks.',
    'The customer gave us {} yesterday.',
    '{"value": "{}", "ok": true}',
    'id;value\n7;{}\n',
    'Contact info = {}',
    '{}',
    '<td>{}</td>',
    'Hi, I am writing again because {} is still wrong in your system.',
    "log.info('user data', '{}');",
    'It used to be something else, now it is {}.',
    'Könnten Sie bitte {} hinterlegen?',
    'Mes informations : {} merci',
    'Can you confirm ({})?',
    'name,contact\nx,{}\n',
  ],
  report: [
    'I would rather not share {} here, but fine.',
    '> on Tuesday she wrote: {}\n\nRegards',
    'Update the profile with {} and close the chat.',
    'field_7: "{}"\nfield_8: null',
    '| 3 | {} | active |',
    'What does {} belong to?',
    'Somebody typed {} into the box, see above.',
    'Mi información es {}, gracias.',
    'Ecco: {}.',
    '- {}\n- nothing else',
    '7\t{}\tdone',
    'We found “{}” in the export.',
    'new Record(4, "{}", true)',
    'My new one: {}; the old one no longer works.',
  ],
};

/** Sentences that say what follows, for types that need such a word. */
const WITH_WORDS = {
  phone: {
    tune: ['Call me at {} please.', 'Phone: {}', 'Tel. {}', 'Mobile: {}', 'My cell is {}.', 'Telefon: {}'],
    report: [
      'You can reach me on my mobile {} all day.',
      'Fax: {}',
      'telephone {} (office)',
      'WhatsApp: {}',
      'Téléphone : {}',
      'Handy: {}',
    ],
  },
  ssn: {
    tune: ['SSN: {}', 'My social security number is {}.', 'ssn={}', 'Social Security No. {}'],
    report: [
      'The applicant’s SSN, {}, was verified.',
      'social security: {}',
      'SSN {} on file',
      'Taxpayer ID {}',
    ],
  },
};

const digitsOf = (text) => text.replace(/\D/g, '');

function luhnDigit(body) {
  for (let digit = 0; digit < 10; digit++)
    if (validator.isLuhnNumber(`${body}${digit}`)) return String(digit);
  throw new Error('unreachable');
}

const NETWORKS = [
  ['4', 16],
  ['4', 13],
  ['51', 16],
  ['55', 16],
  ['2221', 16],
  ['2700', 16],
  ['34', 15],
  ['37', 15],
  ['6011', 16],
  ['65', 16],
  ['36', 14],
  ['3530', 16],
  ['62', 16],
  ['4', 16],
  ['53', 16],
  ['4', 16],
];

function card(r) {
  const [prefix, length] = r.pick(NETWORKS);
  const body = prefix + r.digits(length - 1 - prefix.length);
  return body + luhnDigit(body);
}

function grouped(digits, sign) {
  if (digits.length === 15) return [digits.slice(0, 4), digits.slice(4, 10), digits.slice(10)].join(sign);
  if (digits.length === 14) return [digits.slice(0, 4), digits.slice(4, 10), digits.slice(10)].join(sign);
  return digits.replace(/(\d{4})(?=\d)/g, `$1${sign}`);
}

/** BBAN by country: letters and digits in the order of the registry. n: digit, a: capital, c: either. */
const BBAN = {
  DE: 'n18',
  GB: 'a4n14',
  FR: 'n10c11n2',
  NL: 'a4n10',
  ES: 'n20',
  IT: 'a1n10c12',
  BE: 'n12',
  AT: 'n16',
  CH: 'n5c12',
  PL: 'n24',
  SE: 'n20',
  NO: 'n11',
  DK: 'n14',
  FI: 'n14',
  PT: 'n21',
  IE: 'a4n14',
  CZ: 'n20',
  GR: 'n7c16',
  RO: 'a4c16',
  HU: 'n24',
  TR: 'n5n1c16',
  SA: 'n2c18',
  AE: 'n19',
  LU: 'n3c13',
  MT: 'a4n5c18',
  BR: 'n23a1c1',
  UA: 'n6c19',
  IL: 'n19',
};

function iban(r) {
  const country = r.pick(Object.keys(BBAN));
  let bban = '';
  for (const [, kind, count] of BBAN[country].matchAll(/([nac])(\d+)/g))
    bban += r.text(kind === 'n' ? DIGITS : kind === 'a' ? UPPER : UPPER + DIGITS, Number(count));
  for (let check = 2; check < 99; check++) {
    const whole = `${country}${String(check).padStart(2, '0')}${bban}`;
    if (mod97(whole.slice(4) + whole.slice(0, 4)) === 1) return whole;
  }
  return iban(r);
}

function mod97(text) {
  const digits = [...text].map((one) => (/\d/.test(one) ? one : String(one.charCodeAt(0) - 55))).join('');
  return Number(BigInt(digits) % 97n);
}

function phone(r) {
  for (;;) {
    const country = r.pick(Object.keys(EXAMPLES));
    const example = EXAMPLES[country];
    const kept = r.int(2, Math.max(2, example.length - 4));
    const number = parsePhoneNumberFromString(
      example.slice(0, kept) + r.digits(example.length - kept),
      country,
    );
    if (number?.isValid()) return number;
  }
}

const NANP_AREAS = '201,202,206,212,213,303,305,312,404,415,503,512,602,617,702,713,808,916,604,416'.split(
  ',',
);

function until(make, holds) {
  for (;;) {
    const value = make();
    if (holds(value)) return value;
  }
}

const twoDigits = (n) => String(n).padStart(2, '0');

const NATIONAL = {
  'es-dni': [
    (r) =>
      until(
        () => r.digits(8) + r.pick([...'TRWAGMYFPDXBNJZSQVHLCKE']),
        (id) => validator.isIdentityCard(id, 'ES'),
      ),
    ['{}'],
  ],
  'es-nie': [
    (r) =>
      until(
        () => r.pick([...'XYZ']) + r.digits(7) + r.pick([...'TRWAGMYFPDXBNJZSQVHLCKE']),
        (id) => validator.isIdentityCard(id, 'ES'),
      ),
    ['{}'],
  ],
  'it-cf': [
    (r) =>
      until(
        () =>
          r.text('BCDFGLMNPRSTVZ', 6) +
          r.digits(2) +
          r.pick([...'ABCDEHLMPRST']) +
          twoDigits(r.int(1, 28)) +
          r.pick([...'ABCDEFGHIL']) +
          r.digits(3) +
          r.text(UPPER, 1),
        (id) => validator.isTaxID(id, 'it-IT'),
      ),
    ['{}'],
  ],
  'br-cpf': [
    (r) =>
      until(
        () => r.digits(11),
        (id) => validator.isTaxID(id, 'pt-BR'),
      ).replace(/(\d{3})(\d{3})(\d{3})(\d{2})/, '$1.$2.$3-$4'),
    ['{}'],
  ],
  'se-pnr': [
    (r) =>
      until(
        () =>
          `${twoDigits(r.int(40, 99))}${twoDigits(r.int(1, 12))}${twoDigits(r.int(1, 28))}-${r.digits(4)}`,
        (id) => validator.isTaxID(id, 'sv-SE'),
      ),
    ['{}'],
  ],
  'fi-hetu': [
    (r) =>
      until(
        () =>
          `${twoDigits(r.int(1, 28))}${twoDigits(r.int(1, 12))}${twoDigits(r.int(40, 99))}-${r.digits(3)}${r.pick([...'0123456789ABCDEFHJKLMNPRSTUVWXY'])}`,
        (id) => validator.isTaxID(id, 'fi-FI'),
      ),
    ['{}'],
  ],
  'be-nrn': [
    (r) =>
      until(
        () => `${twoDigits(r.int(40, 99))}${twoDigits(r.int(1, 12))}${twoDigits(r.int(1, 28))}${r.digits(5)}`,
        (id) => validator.isTaxID(id, 'fr-BE'),
      ).replace(/(..)(..)(..)(...)(..)/, '$1.$2.$3-$4.$5'),
    ['{}'],
  ],
  'cn-rid': [
    (r) =>
      until(
        () =>
          `110105${r.int(1950, 2004)}${twoDigits(r.int(1, 12))}${twoDigits(r.int(1, 28))}${r.digits(3)}${r.pick([...'0123456789X'])}`,
        (id) => validator.isIdentityCard(id, 'zh-CN'),
      ),
    ['{}'],
  ],
  'fr-nir': [
    (r) => {
      const body = `${r.int(1, 2)}${r.digits(2)}${twoDigits(r.int(1, 12))}${twoDigits(r.int(1, 95))}${r.digits(6)}`;
      return `${body}${twoDigits(97 - Number(BigInt(body) % 97n))}`;
    },
    ['{}'],
  ],
  'gb-nino': [
    (r) =>
      until(
        () => r.text('ABCEGHJKLMNPRSTWXYZ', 2),
        (id) => !/^(BG|GB|KN|NK|NT|TN|ZZ)|^[DFIQUV]|^.[DFIQUVO]/.test(id),
      ) +
      (r.chance(0.5) ? ` ${r.digits(2)} ${r.digits(2)} ${r.digits(2)} ` : r.digits(6)) +
      r.pick([...'ABCD']),
    ['{}'],
  ],
  'de-tax': [
    (r) =>
      until(
        () => r.pick([...'123456789']) + r.digits(10),
        (id) => validator.isTaxID(id, 'de-DE'),
      ),
    {
      tune: ['Steuer-ID: {}', 'Meine Steueridentifikationsnummer ist {}.'],
      report: ['IdNr. {}', 'Steuernummer {} laut Bescheid'],
    },
  ],
  'nl-bsn': [
    (r) =>
      until(
        () => r.digits(9),
        (id) => validator.isTaxID(id, 'nl-NL'),
      ),
    { tune: ['BSN: {}', 'Mijn BSN is {}.'], report: ['burgerservicenummer {}', 'bsn {} gecontroleerd'] },
  ],
  'pl-pesel': [
    (r) =>
      until(
        () => `${twoDigits(r.int(40, 99))}${twoDigits(r.int(1, 12))}${twoDigits(r.int(1, 28))}${r.digits(5)}`,
        (id) => validator.isTaxID(id, 'pl-PL') && validator.isIdentityCard(id, 'PL'),
      ),
    { tune: ['PESEL: {}', 'Mój PESEL to {}.'], report: ['numer PESEL {}', 'pesel={}'] },
  ],
  'ca-sin': [
    (r) =>
      until(
        () => r.pick([...'1234567']) + r.digits(8),
        (id) => validator.isLuhnNumber(id),
      ).replace(/(...)(...)(...)/, '$1 $2 $3'),
    {
      tune: ['SIN: {}', 'My social insurance number is {}.'],
      report: ['Social Insurance No. {}', 'SIN {} (Canada)'],
    },
  ],
  'in-aadhaar': [
    (r) =>
      until(
        () => r.pick([...'23456789']) + r.digits(11),
        (id) => validator.isIdentityCard(id, 'IN'),
      ).replace(/(.{4})(.{4})(.{4})/, '$1 $2 $3'),
    {
      tune: ['Aadhaar: {}', 'My Aadhaar number is {}.'],
      report: ['aadhar no {}', 'Aadhaar card {} uploaded'],
    },
  ],
  'au-tfn': [
    (r) =>
      until(
        () => r.digits(9),
        (id) => [1, 4, 3, 7, 5, 8, 6, 9, 10].reduce((sum, w, i) => sum + w * Number(id[i]), 0) % 11 === 0,
      ).replace(/(...)(...)(...)/, '$1 $2 $3'),
    { tune: ['TFN: {}', 'tax file number {}'], report: ['My TFN is {}.', 'Tax File Number: {}'] },
  ],
};

const ipv4 = (r) =>
  until(
    () => [r.int(1, 223), r.int(0, 255), r.int(0, 255), r.int(1, 254)],
    ([a, b, c, d]) => a !== 127 && a !== 0 && [a, b, c, d].some((n) => n > 9),
  ).join('.');

function ipv6(r) {
  const groups = [
    '2001',
    r.text(HEX, 4),
    ...Array.from({ length: 6 }, () => r.text(HEX, 4).replace(/^0+(?=.)/, '')),
  ];
  if (r.chance(0.5)) return groups.join(':');
  const from = r.int(2, 4);
  const short = `${groups.slice(0, from).join(':')}::${groups.slice(r.int(from + 2, 7)).join(':')}`;
  return r.chance(0.2) ? short.toUpperCase() : short;
}

function mac(r) {
  const pairs = until(
    () => r.text(HEX, 12),
    (one) => /[a-f]/.test(one),
  );
  const shown = r.chance(0.4) ? pairs.toUpperCase() : pairs;
  const kind = r.int(0, 3);
  if (kind === 3) return shown.match(/.{4}/g).join('.');
  return shown.match(/../g).join(kind === 0 ? '-' : ':');
}

function email(r) {
  const name = r.pick(NAMES);
  const local = r.pick([
    name,
    `${name}.${r.pick(SURNAMES)}`,
    `${name}${r.int(1, 9999)}`,
    `${name}_${r.pick(SURNAMES)}`,
    `${name}+${r.text(LOWER, 5)}`,
    `${name[0]}-${r.pick(SURNAMES)}`,
    `${name.toUpperCase()}`,
    `${name}.${r.text(LOWER, 1)}.${r.pick(SURNAMES)}`,
  ]);
  const domain = r.pick([
    'example.org',
    'example.com',
    `${r.text(LOWER, 7)}.com`,
    `mail.${r.text(LOWER, 6)}.co.uk`,
    `${r.text(LOWER, 5)}-${r.text(LOWER, 4)}.de`,
    `${r.text(LOWER, 6)}.museum`,
    `${r.text(LOWER, 4)}${r.int(1, 99)}.io`,
    `${r.pick(SURNAMES)}.example`,
    'x.travel',
    `${r.text(LOWER, 9)}.gov.br`,
  ]);
  return `${local}@${domain}`;
}

function ssn(r) {
  return until(
    () =>
      `${twoDigits(r.int(0, 99)).padStart(3, String(r.int(0, 8)))}-${twoDigits(r.int(1, 99))}-${String(r.int(1, 9999)).padStart(4, '0')}`,
    (id) => !/^(000|666|9)/.test(id) && id !== '078-05-1120' && id !== '219-09-9999',
  );
}

const password = (r) => r.text(`${LOWER}${UPPER}${DIGITS}!$%*-_`, r.int(6, 18));

/** Values and the sentences they stand in, by type. */
const POSITIVE = {
  email: (r, set) => placed(r.pick(SENTENCES[set]), email(r), 'email'),
  phone(r, set) {
    const way = r.int(0, 9);
    if (way < 6) {
      const number = phone(r);
      const shown = r.pick([
        number.formatInternational(),
        number.format('E.164'),
        number.formatInternational().replaceAll(' ', '-'),
        number.formatInternational().replace('+', '00'),
        number.formatInternational().replaceAll(' ', '.'),
      ]);
      return placed(r.pick(SENTENCES[set]), shown, 'phone');
    }
    if (way < 9) {
      const [area, exchange, line] = [
        r.pick(NANP_AREAS),
        `${r.int(2, 9)}${r.int(2, 9)}${r.int(0, 9)}`,
        r.digits(4),
      ];
      const shown = r.pick([
        `(${area}) ${exchange}-${line}`,
        `${area}-${exchange}-${line}`,
        `1-${area}-${exchange}-${line}`,
        `${area}.${exchange}.${line}`,
      ]);
      return placed(r.pick(SENTENCES[set]), shown, 'phone');
    }
    return placed(
      r.pick(WITH_WORDS.phone[set]),
      until(
        () => phone(r).formatNational(),
        (one) => digitsOf(one).length >= 7,
      ),
      'phone',
    );
  },
  'credit-card': (r, set) => {
    const digits = card(r);
    return placed(
      r.pick(SENTENCES[set]),
      r.pick([digits, grouped(digits, ' '), grouped(digits, '-')]),
      'credit-card',
    );
  },
  iban: (r, set) => {
    const plain = iban(r);
    return placed(
      r.pick(SENTENCES[set]),
      r.pick([plain, plain.replace(/(.{4})(?=.)/g, '$1 '), plain.replace(/(.{4})(?=.)/g, '$1-')]),
      'iban',
    );
  },
  ip: (r, set) => placed(r.pick(SENTENCES[set]), r.chance(0.65) ? ipv4(r) : ipv6(r), 'ip'),
  mac: (r, set) => placed(r.pick(SENTENCES[set]), mac(r), 'mac'),
  ssn: (r, set) => {
    const dashed = ssn(r);
    if (r.chance(0.6)) return placed(r.pick(SENTENCES[set]), dashed, 'ssn');
    return placed(
      r.pick(WITH_WORDS.ssn[set]),
      r.pick([dashed.replaceAll('-', ' '), dashed.replaceAll('-', '')]),
      'ssn',
    );
  },
  'national-id': (r, set) => {
    const [make, words] = NATIONAL[r.pick(Object.keys(NATIONAL))];
    return placed(r.pick(Array.isArray(words) ? SENTENCES[set] : words[set]), make(r), 'national-id');
  },
  'url-credentials': (r, set) => {
    const userinfo = `${r.pick(NAMES)}${r.chance(0.3) ? r.int(1, 99) : ''}:${password(r)}`;
    const scheme = r.pick(['https', 'http', 'ftp', 'postgres', 'redis', 'amqp', 'mongodb+srv', 'ssh']);
    const rest = r.pick([
      'example.org/a?b=c',
      'db.internal:5432/shop',
      '10.1.2.3/x',
      'files.example.com',
      'cluster0.mongodb.net/app',
    ]);
    const template = r.pick(SENTENCES[set]).replace('{}', () => `${scheme}://{}@${rest}`);
    return placed(template, userinfo, 'url-credentials');
  },
};

const date = (r) =>
  r.pick([
    `${r.int(1990, 2030)}-${twoDigits(r.int(1, 12))}-${twoDigits(r.int(1, 28))}`,
    `${twoDigits(r.int(1, 28))}.${twoDigits(r.int(1, 12))}.${r.int(1990, 2030)}`,
    `${twoDigits(r.int(1, 12))}/${twoDigits(r.int(1, 28))}/${r.int(1990, 2030)}`,
  ]);
const time = (r) => `${twoDigits(r.int(0, 23))}:${twoDigits(r.int(0, 59))}:${twoDigits(r.int(0, 59))}`;
const version = (r) => Array.from({ length: r.int(3, 4) }, () => r.int(0, r.pick([9, 30, 200]))).join('.');
const uuid = (r) => [8, 4, 4, 4, 12].map((length) => r.text(HEX, length)).join('-');
const isbn = (r) => {
  const body = `978${r.digits(9)}`;
  const sum = [...body].reduce((total, digit, i) => total + Number(digit) * (i % 2 ? 3 : 1), 0);
  const whole = body + ((10 - (sum % 10)) % 10);
  return r.chance(0.5) ? whole : whole.replace(/(\d{3})(\d)(\d{4})(\d{4})(\d)/, '$1-$2-$3-$4-$5');
};
const luhnByChance = (r) => {
  const body = r.pick(['4', '51', '6011', '37']) + r.digits(12);
  return body.slice(0, 15) + luhnDigit(body.slice(0, 15));
};
const wrongLuhn = (r) => {
  const digits = card(r);
  return digits.slice(0, -1) + ((Number(digits.at(-1)) + r.int(1, 9)) % 10);
};
const imei = (r) => {
  const body = `35${r.digits(12)}`;
  return body + luhnDigit(body);
};
const coordinates = (r) =>
  `${r.chance(0.5) ? '+' : '-'}${r.int(1, 89)}.${r.digits(5)}, ${r.chance(0.5) ? '+' : '-'}${r.int(1, 179)}.${r.digits(5)}`;
const code = (r) =>
  r.pick([
    `for (let i = 0; i < ${r.int(10, 99999)}; i++) total += rows[i] * ${r.int(2, 99)}.${r.digits(2)};`,
    `const x = 0x${r.text(HEX, 8)} ^ ${r.digits(9)};`,
    `a[${r.int(0, 999)}]=${r.int(0, 999)};b={c:${r.int(0, 9)},d:"${r.text(LOWER, 4)}"};`,
    `git checkout ${r.text(HEX, 40)}`,
    `sleep(${r.digits(4)}); retry(${r.int(1, 9)});`,
  ]);
const snowflake = (r) => `1${r.digits(18)}`;

/** Ordinary text with numbers in it, for every type. */
const GENERAL = {
  tune: [
    (r) => `Meeting on ${date(r)} at ${time(r)}.`,
    (r) => `Upgraded from ${version(r)} to v${version(r)} today.`,
    (r) => `Request ${uuid(r)} took ${r.int(1, 9999)} ms.`,
    (r) => code(r),
    (r) => `The book (ISBN ${isbn(r)}) costs $${r.int(5, 99)}.${r.digits(2)}.`,
    (r) =>
      `${r.int(1000, 9999)} people, ${r.int(10, 99)} %, ${r.int(1, 9)},${r.digits(3)},${r.digits(3)} dollars`,
  ],
  report: [
    (r) => `Deployed build ${version(r)} (${r.text(HEX, 7)}) on ${date(r)}.`,
    (r) => `"createdAt": "${date(r)}T${time(r)}.${r.digits(3)}Z", "id": "${uuid(r)}"`,
    (r) => `Paperback, ${r.int(100, 900)} pages, ISBN-13: ${isbn(r)}`,
    (r) => code(r),
    (r) =>
      `Row ${r.digits(5)}: ${r.int(0, 99)}.${r.digits(3)} ${r.int(0, 99)}.${r.digits(3)} ${r.int(0, 99)}.${r.digits(3)}`,
    (r) =>
      `Score ${r.int(0, 30)}-${r.int(0, 30)} after ${r.int(1, 90)} minutes; ${r.digits(6)} tickets sold.`,
  ],
};

/** What is like a type and is none of it. */
const NEGATIVE = {
  email: {
    tune: [
      (r) => `npm install ${r.text(LOWER, 6)}@${version(r)}`,
      (r) => `git clone git@github.com:${r.text(LOWER, 5)}/${r.text(LOWER, 6)}.git`,
      (r) => `Follow @${r.pick(NAMES)} and @${r.pick(NAMES)}_${r.text(LOWER, 3)}.`,
      (r) => `<img src="${r.text(LOWER, 4)}@2x.png">`,
      (r) => `@Component({ selector: '${r.text(LOWER, 4)}' })`,
      (r) => `${r.pick(NAMES)}@localhost`,
    ],
    report: [
      (r) => `docker pull ${r.text(LOWER, 5)}@sha256:${r.text(HEX, 64)}`,
      (r) => `"${r.text(LOWER, 6)}@^${version(r)}": "resolved"`,
      (r) => `remote: git@gitlab.com:${r.text(LOWER, 5)}/${r.text(LOWER, 6)}.git`,
      (r) => `@media (min-width: ${r.int(100, 999)}px) { a { b: c } }`,
      (r) => `icon@3x.webp, ${r.text(LOWER, 5)}@dark.svg`,
      (r) =>
        `lunch @ ${r.int(1, 12)} with @${r.pick(NAMES)}, ${r.int(2, 9)} @ $${r.int(1, 9)}.${r.digits(2)} each`,
    ],
  },
  phone: {
    tune: [
      (r) => `Order ${r.digits(10)} shipped.`,
      (r) => `ISBN ${isbn(r)}`,
      (r) => `At ${coordinates(r)}.`,
      (r) => `ZIP ${r.digits(5)}-${r.digits(4)}`,
      (r) => `Balance: +${r.int(1, 9)},${r.digits(3)},${r.digits(3)}`,
      (r) => `epoch ${r.int(15, 17)}${r.digits(8)}`,
    ],
    report: [
      (r) => `Part no. ${r.digits(3)}-${r.digits(3)}-${r.digits(3)}`,
      (r) => `Position ${coordinates(r)}`,
      (r) => `ts=${r.int(15, 17)}${r.digits(11)}`,
      (r) => `invoice ${r.digits(4)}-${r.digits(6)}`,
      (r) => `Range ${r.int(1000, 1999)}-${r.int(2000, 2999)}, +${r.int(1, 99)} % since ${date(r)}`,
      (r) => `serial ${r.digits(3)} ${r.digits(3)} ${r.digits(4)}`,
    ],
  },
  'credit-card': {
    tune: [
      (r) => `Order ${luhnByChance(r)} has shipped.`,
      (r) => `Invoice no. ${luhnByChance(r)}`,
      (r) => `IMEI: ${imei(r)}`,
      (r) => `The number ${wrongLuhn(r)} is wrong.`,
      (r) => `tracking number ${luhnByChance(r)}`,
      (r) => `user ${snowflake(r)}`,
    ],
    report: [
      (r) => `Your parcel ${luhnByChance(r)} arrives tomorrow.`,
      (r) => `transaction_id=${luhnByChance(r)}`,
      (r) => `serial number ${luhnByChance(r)}`,
      (r) => `device imei ${imei(r)}`,
      (r) => `${grouped(wrongLuhn(r), ' ')} was typed`,
      (r) => `"orderNumber": "${luhnByChance(r)}"`,
    ],
  },
  iban: {
    tune: [
      (r) => `VAT DE${r.digits(9)}`,
      (r) => `BIC ${r.text(UPPER, 6)}${r.digits(2)}`,
      (r) =>
        until(
          () => iban(r).replace(/\d(?=.$)/, () => r.digits(1)),
          (one) => mod97(one.slice(4) + one.slice(0, 4)) !== 1,
        ),
      (r) => `Key ${Array.from({ length: 5 }, () => r.text(UPPER + DIGITS, 5)).join('-')}`,
      (r) => `VIN ${r.text('ABCDEFGHJKLMNPRSTUVWXYZ0123456789', 17)}`,
    ],
    report: [
      (r) => `USt-IdNr. ATU${r.digits(8)}, FR${r.digits(11)}`,
      (r) => `licence ${Array.from({ length: 4 }, () => r.text(UPPER + DIGITS, 4)).join('-')}`,
      (r) =>
        `not an account: ${until(
          () => {
            const one = iban(r);
            return one.slice(0, 2) + r.digits(2) + one.slice(4);
          },
          (one) => mod97(one.slice(4) + one.slice(0, 4)) !== 1,
        )}`,
      (r) => `SE${r.digits(22)} ${r.digits(3)}`.replace(/^SE(\d\d)/, (_, d) => `SE${d}`),
      (r) => `part NL${r.digits(4)}B${r.digits(2)}`,
    ],
  },
  ip: {
    tune: [
      (r) => `Version ${version(r)}.${r.int(0, 200)} is out.`,
      (r) => `See section ${r.int(1, 9)}.${r.int(1, 9)}.${r.int(1, 9)}.${r.int(1, 9)}.`,
      (r) => `Chrome/${r.int(90, 130)}.0.${r.int(1000, 9999)}.${r.int(10, 250)}`,
      (r) => `started ${time(r)}, ended ${time(r)}`,
      (r) => `std::${r.text(LOWER, 5)}::${r.text(LOWER, 4)}`,
      (r) => `${r.int(256, 999)}.${r.int(0, 255)}.${r.int(0, 255)}.${r.int(0, 255)}`,
    ],
    report: [
      (r) => `firmware v${r.int(1, 20)}.${r.int(0, 99)}.${r.int(0, 99)}.${r.int(0, 99)} released`,
      (r) => `chapter ${r.int(1, 20)}.${r.int(1, 20)}.${r.int(1, 9)}.${r.int(1, 9)} of the manual`,
      (r) => `OID 1.3.6.1.4.1.${r.int(1, 9999)}.${r.int(1, 9)}`,
      (r) => `Mozilla/5.0 AppleWebKit/537.36 Edg/${r.int(90, 130)}.0.${r.int(1000, 2999)}.${r.int(10, 99)}`,
      (r) => `"${r.text(LOWER, 5)}": "~${r.int(1, 9)}.${r.int(0, 20)}.${r.int(0, 20)}.${r.int(0, 20)}"`,
      (r) => `ratio ${r.int(1, 21)}:${r.int(1, 9)}, at ${time(r)}; 127.0.0.1, 0.0.0.0, 255.255.255.0`,
    ],
  },
  mac: {
    tune: [
      (r) => `from ${time(r)} to ${time(r)}`,
      (r) => `SHA1 fingerprint ${Array.from({ length: 20 }, () => r.text(HEX, 2)).join(':')}`,
      (r) => `uuid ${uuid(r)}`,
      (r) => `${date(r)}-${r.digits(2)}-${r.digits(2)}`,
      (r) => `dump ${Array.from({ length: 16 }, () => r.text(HEX, 2)).join(' ')}`,
    ],
    report: [
      (r) => `MD5:${Array.from({ length: 16 }, () => r.text(HEX, 2)).join(':')}`,
      (r) => `lap ${r.digits(2)}:${r.digits(2)}:${r.digits(2)}.${r.digits(3)}`,
      (r) => `${r.digits(4)}-${r.digits(2)}-${r.digits(2)}-${r.digits(2)}-${r.digits(2)}.log`,
      (r) => `colour #${r.text(HEX, 6)}, ref ${uuid(r)}`,
      (r) => `2001:${r.text(HEX, 4)}::${r.text(HEX, 4)}`,
    ],
  },
  ssn: {
    tune: [
      (r) => `Case ${r.pick(['000', '666', `9${r.digits(2)}`])}-${r.digits(2)}-${r.digits(4)}`,
      (r) => `ZIP ${r.digits(5)}-${r.digits(4)}`,
      (r) => `on ${date(r)}`,
      (r) => `Order ${r.digits(9)}`,
      (r) => `Part no. ${r.digits(3)}-${r.digits(2)}-${r.digits(4)}`,
    ],
    report: [
      (r) => `${r.digits(3)}-00-${r.digits(4)} or ${r.digits(3)}-${twoDigits(r.int(1, 99))}-0000`,
      (r) => `Item ${r.digits(9)} is out of stock.`,
      (r) => `Postal code ${r.digits(5)}-${r.digits(4)}, ${date(r)}`,
      (r) => `SKU ${r.digits(3)}-${r.digits(2)}-${r.digits(4)}-${r.digits(2)}`,
      (r) => `model ${r.text(UPPER, 2)}${r.digits(3)}-${r.digits(2)}-${r.digits(4)}`,
    ],
  },
  'national-id': {
    tune: [
      (r) => `Order ${r.digits(11)}`,
      (r) => `Ticket ${r.digits(8)}${r.pick([...'IOU'])}`,
      (r) => `${r.digits(6)}-${r.digits(3)}`,
      (r) => `part ${r.text(UPPER, 2)}${r.digits(6)}E`,
      (r) => `id ${r.digits(15)}`,
    ],
    report: [
      (r) => `Shipment ${r.digits(12)}`,
      (r) => `Batch ${r.digits(8)}${r.pick([...'IOU'])} of ${date(r)}`,
      (r) => `log-${r.digits(6)}-${r.digits(4)}.txt`,
      (r) => `tax of ${r.digits(9)} units, ${r.digits(3)}.${r.digits(3)}.${r.digits(3)},${r.digits(2)} R$`,
      (r) => `reference ${r.text(UPPER, 2)} ${r.digits(2)} ${r.digits(2)} ${r.digits(2)} Z`,
    ],
  },
  'url-credentials': {
    tune: [
      (r) => `https://example.org:${r.int(1000, 9999)}/@${r.pick(NAMES)}`,
      (r) => `ssh://git@example.org/${r.text(LOWER, 5)}.git`,
      (r) => `https://medium.com/@${r.pick(NAMES)}/post-${r.digits(4)}`,
      () => 'postgres://user:$PASSWORD@host/db',
      (r) => `http://localhost:${r.int(1000, 9999)}/?x=a@b`,
    ],
    report: [
      (r) => `https://www.tiktok.com/@${r.pick(NAMES)}/video/${r.digits(19)}`,
      (r) => `redis://cache:${r.int(6000, 6999)}/0`,
      () => 'mysql://<user>:<password>@localhost/app',
      (r) => `ftp://anonymous@ftp.example.org/${r.text(LOWER, 5)}`,
      (r) => `https://x.org/a:b@c?${r.text(LOWER, 3)}=${r.int(1, 99)}`,
    ],
  },
};

/**
 * Texts of one type: `count` with it and as many without, half of those like it and half ordinary.
 *
 * @param {string} type
 * @param {'tune' | 'report'} set
 * @param {number} seed
 */
export function piiCorpus(type, set, seed, count = 1200) {
  const r = randomFrom(seed + Object.keys(POSITIVE).indexOf(type) * 7919 + PLACES.indexOf(set));
  const positives = Array.from({ length: count }, () => POSITIVE[type](r, set));
  const negatives = Array.from({ length: count }, (_, i) => ({
    text: r.pick(i % 2 === 0 ? NEGATIVE[type][set] : GENERAL[set])(r),
    spans: [],
  }));
  return [...positives, ...negatives];
}

export const PII_CORPUS_TYPES = Object.keys(POSITIVE);
/** Types whose numbers carry a check digit. */
export const CHECKED = new Set(['credit-card', 'iban']);
