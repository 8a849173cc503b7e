// Keys of vendors and what looks like them, generated. The formats follow what the vendors publish; bodies are random. What the
// detector knows is not read here. Sentences of the report are others than those of tuning.

import { ALNUM, BASE64, BASE64URL, DIGITS, HEX, LOWER, placed, randomFrom, UPPER } from './random.mjs';

const jwt = (r) => {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: r.pick(['HS256', 'RS256', 'ES256']), typ: 'JWT', kid: r.text(ALNUM, 8) })}.${part({ sub: r.digits(10), iat: Number(`17${r.digits(8)}`), scope: r.text(LOWER, 12) })}.${r.text(BASE64URL, 43)}`;
};
const pem = (r) => {
  const kind = r.pick(['RSA ', 'EC ', 'OPENSSH ', '']);
  const lines = Array.from({ length: r.int(3, 24) }, () => r.text(BASE64, 64)).join('\n');
  return `-----BEGIN ${kind}PRIVATE KEY-----\n${lines}\n-----END ${kind}PRIVATE KEY-----`;
};
const strong = (r) =>
  r.text(LOWER, 4) + r.text(UPPER, 3) + r.digits(3) + r.pick([...'!#%^&*?']) + r.text(ALNUM, r.int(2, 6));

/** Vendor → a key. */
const VENDORS = {
  aws: (r) => `AKIA${r.text('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 16)}`,
  'aws-temporary': (r) => `ASIA${r.text('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 16)}`,
  github: (r) => `${r.pick(['ghp', 'gho', 'ghs', 'ghu'])}_${r.text(ALNUM, 36)}`,
  'github-fine-grained': (r) => `github_pat_${r.text(ALNUM, 22)}_${r.text(ALNUM, 59)}`,
  gitlab: (r) => `glpat-${r.text(BASE64URL, 20)}`,
  slack: (r) => `xoxb-${r.digits(12)}-${r.digits(12)}-${r.text(ALNUM, 24)}`,
  'slack-webhook': (r) =>
    `hooks.slack.com/services/T${r.text(UPPER + DIGITS, 8)}/B${r.text(UPPER + DIGITS, 8)}/${r.text(ALNUM, 24)}`,
  stripe: (r) => `${r.pick(['sk', 'rk'])}_${r.pick(['live', 'test'])}_${r.text(ALNUM, r.pick([24, 99]))}`,
  openai: (r) => `sk-proj-${r.text(BASE64URL, 74)}T3BlbkFJ${r.text(BASE64URL, 74)}`,
  'openai-legacy': (r) => `sk-${r.text(ALNUM, 20)}T3BlbkFJ${r.text(ALNUM, 20)}`,
  anthropic: (r) => `sk-ant-api03-${r.text(BASE64URL, 93)}AA`,
  google: (r) => `AIza${r.text(BASE64URL, 35)}`,
  'google-oauth': (r) => `GOCSPX-${r.text(BASE64URL, 28)}`,
  npm: (r) => `npm_${r.text(ALNUM, 36)}`,
  pypi: (r) => `pypi-AgEIcHlwaS5vcmc${r.text(BASE64URL, 80)}`,
  sendgrid: (r) => `SG.${r.text(BASE64URL, 22)}.${r.text(BASE64URL, 43)}`,
  twilio: (r) => `SK${r.text(HEX, 32)}`,
  mailgun: (r) => `key-${r.text(HEX, 32)}`,
  mailchimp: (r) => `${r.text(HEX, 32)}-us${r.int(1, 21)}`,
  shopify: (r) => `shpat_${r.text(HEX, 32)}`,
  square: (r) => `sq0atp-${r.text(BASE64URL, 22)}`,
  databricks: (r) => `dapi${r.text(HEX, 32)}`,
  huggingface: (r) => `hf_${r.text(LOWER + UPPER, 34)}`,
  digitalocean: (r) => `dop_v1_${r.text(HEX, 64)}`,
  linear: (r) => `lin_api_${r.text(ALNUM, 40)}`,
  postman: (r) => `PMAK-${r.text(HEX, 24)}-${r.text(HEX, 34)}`,
  newrelic: (r) => `NRAK-${r.text(UPPER + DIGITS, 27)}`,
  grafana: (r) => `glsa_${r.text(ALNUM, 32)}_${r.text(HEX, 8)}`,
  vault: (r) => `hvs.${r.text(BASE64URL, 90)}`,
  telegram: (r) => `${r.digits(10).replace(/^0/, '7')}:AA${r.text(BASE64URL, 33)}`,
  docker: (r) => `dckr_pat_${r.text(BASE64URL, 27)}`,
  terraform: (r) => `${r.text(ALNUM, 14)}.atlasv1.${r.text(BASE64URL, 67)}`,
  airtable: (r) => `pat${r.text(ALNUM, 14)}.${r.text(HEX, 64)}`,
  discord: (r) => `M${r.text(ALNUM, 23)}.${r.text(BASE64URL, 6)}.${r.text(BASE64URL, 38)}`,
  groq: (r) => `gsk_${r.text(ALNUM, 52)}`,
  jwt,
  'private-key': pem,
};

const SENTENCES = {
  tune: [
    'The key is {} and nothing else.',
    'API_KEY={}',
    '{"token": "{}"}',
    'curl -H "X-Key: {}" https://api.example.org',
    "const key = '{}';",
    '{}',
    'I pasted {} by mistake',
    '  token: {}\n  region: eu',
  ],
  report: [
    'Use {} for staging.',
    'export SERVICE_TOKEN="{}"',
    '<add name="key" value="{}" />',
    'She sent me this: {}',
    'client = Client(api_key="{}")',
    '# old one: {}',
    '| prod | {} |',
    'set it to `{}` please',
  ],
};

/** Passwords and random values, whose name says what they are: the value is what must be found. */
const NAMED = {
  tune: [
    (r) => [`DB_PASSWORD=${'{}'}`, strong(r)],
    (r) => [`postgres://app:{}@db.internal:5432/shop`, strong(r).replace(/[#?%^&*]/g, '-')],
    (r) => [`client_secret: "{}"`, r.text(ALNUM, 32)],
    (r) => [`Authorization: Bearer {}`, r.text(ALNUM, 40)],
    (r) => [`the password is {}`, strong(r)],
    (r) => [
      `DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=core.windows.net`,
      `${r.text(BASE64, 86)}==`,
    ],
    (r) => [`secret_key = "{}"`, r.text(HEX, 40)],
  ],
  report: [
    (r) => [`"password": "{}"`, strong(r)],
    (r) => [`mysql://root:{}@10.0.0.5/app`, strong(r).replace(/[#?%^&*]/g, '_')],
    (r) => [`aws_secret_access_key = {}`, r.text(BASE64, 40)],
    (r) => [`X-Auth-Token: {}`, r.text(HEX, 32)],
    (r) => [`encryption_key: '{}'`, r.text(BASE64, 44)],
    (r) => [`Server=tcp:db;Database=x;User ID=sa;Password={};Encrypt=true`, strong(r).replace(/[;'"]/g, '-')],
    (r) => [`authorization: bearer {}`, r.text(BASE64URL, 48)],
  ],
};

const uuid = (r) => [8, 4, 4, 4, 12].map((length) => r.text(HEX, length)).join('-');
const words = (r, count) =>
  Array.from({ length: count }, () =>
    r.pick(
      'user session config handler default value remote store local cache primary index factory builder'.split(
        ' ',
      ),
    ),
  );
const camel = (r) =>
  words(r, r.int(2, 4))
    .map((word, i) => (i ? word[0].toUpperCase() + word.slice(1) : word))
    .join('');

const NEGATIVE = {
  tune: [
    (r) => `commit ${r.text(HEX, 40)}`,
    (r) => `id: ${uuid(r)}`,
    (r) => `data:image/png;base64,iVBORw0KGgo${r.text(BASE64, r.int(60, 400))}==`,
    (r) =>
      `!function(e,t){var n=${r.int(1, 99)};${camel(r)}(e,"${camel(r)}",t.${camel(r)})}(window,{${camel(r)}:${r.digits(4)}});`,
    (r) => `"integrity": "sha512-${r.text(BASE64, 86)}=="`,
    (r) => `const token = ${camel(r)}.${camel(r)}();`,
    () => 'password: string; // the password is required',
    (r) => `API_KEY=your-${r.pick(['api', 'secret'])}-key-here`,
    (r) => `https://example.org/${words(r, 3).join('/')}/${r.text(HEX, 12)}`,
    (r) => `sha256:${r.text(HEX, 64)}`,
    (r) => `token: <${words(r, 2).join('-')}>`,
  ],
  report: [
    (r) => `HEAD is now at ${r.text(HEX, 7)} ${words(r, 4).join(' ')}; parent ${r.text(HEX, 40)}`,
    (r) => `traceparent: 00-${r.text(HEX, 32)}-${r.text(HEX, 16)}-01`,
    (r) => `<img src="data:image/jpeg;base64,/9j/4AAQSkZJRg${r.text(BASE64, r.int(80, 300))}">`,
    (r) =>
      `(()=>{"use strict";var e={${r.digits(4)}:(e,t,n)=>{n.d(t,{${r.text(LOWER, 1)}:()=>${r.text(LOWER, 1)}})}},t={};${camel(r)}.${camel(r)}()})();`,
    (r) => `ETag: "${r.text(HEX, 32)}", request ${uuid(r)}`,
    (r) => `secret = settings.${camel(r)}.${camel(r)}`,
    () => 'The token expires after one hour; the password was changed yesterday.',
    (r) => `GITHUB_TOKEN=\${{ secrets.${words(r, 2).join('_').toUpperCase()} }}`,
    (r) => `import { ${camel(r)} } from './${words(r, 3).join('-')}/${camel(r)}.js';`,
    (r) => `checksum = "${r.text(HEX, 64)}"`,
    (r) => `passwordField: '${words(r, 3).join('-')}'`,
    (r) => `"sk-${words(r, 2).join('-')}": true, "key-${words(r, 2).join('-')}": false`,
  ],
};

/**
 * @param {'tune' | 'report'} set
 * @param {number} seed
 */
export function secretsCorpus(set, seed, perVendor = 40) {
  const r = randomFrom(seed);
  /** @type {{ vendor: string, text: string, spans: { start: number, end: number, kind: string }[] }[]} */
  const positives = [];
  for (const [vendor, make] of Object.entries(VENDORS))
    for (let i = 0; i < perVendor; i++)
      positives.push({ vendor, ...placed(r.pick(SENTENCES[set]), make(r), 'secret') });
  for (let i = 0; i < perVendor * NAMED[set].length; i++) {
    const [template, value] = r.pick(NAMED[set])(r);
    positives.push({ vendor: 'named', ...placed(template, value, 'secret') });
  }
  const negatives = positives.map(() => ({ vendor: '', text: r.pick(NEGATIVE[set])(r), spans: [] }));
  return [...positives, ...negatives];
}

export const VENDOR_COUNT = Object.keys(VENDORS).length;
