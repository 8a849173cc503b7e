// What a user would pick instead, each as its documentation sets it up. A peer says under which of its own names it reports a
// type of the corpora; a type that it does not claim to find is left out. `load` resolves to a function from a text to the
// names of what was found in it.

import { DEFAULT_TYPES, piiDetector } from '../../dist/pii/detect.js';
import { injectionDetector } from '../../dist/prompt-injection/detect.js';
import { secretDetector } from '../../dist/secrets/detect.js';

/**
 * @typedef {(text: string) => Iterable<string> | Promise<Iterable<string>>} Find
 * @typedef {{
 *   name: string,
 *   package?: string,
 *   setup: string,
 *   claims: Record<string, readonly string[]>,
 *   load: () => Promise<Find>,
 * }} Peer
 */

const ANY = ['found'];
const found = (is) => (is ? ANY : []);

/** Names of placeholders that stand in what a redactor returned, and did not stand in the text before. */
const placeholders = (names, before, after) =>
  after === before ? [] : names.filter((name) => after.includes(name) && !before.includes(name));

/** @type {Peer[]} */
export const PEERS = [
  {
    name: '@allium/guardrails `pii`',
    setup: 'pii()',
    claims: Object.fromEntries(DEFAULT_TYPES.map((type) => [type, [type]])),
    async load() {
      const detect = piiDetector({ types: DEFAULT_TYPES });
      return (text) => detect(text, 0).map(({ kind }) => kind);
    },
  },
  {
    name: '@allium/guardrails `secrets`',
    setup: 'secrets()',
    claims: { secrets: ANY },
    async load() {
      const detect = secretDetector({ entropy: true });
      return (text) => found(detect(text, 0).length > 0);
    },
  },
  {
    name: '@allium/guardrails `promptInjection`',
    setup: 'promptInjection()',
    claims: { injection: ANY },
    async load() {
      const detect = injectionDetector({ threshold: 1, strict: false });
      return (text) => found(detect(text).length > 0);
    },
  },
  {
    name: '@openai/guardrails `Contains PII`',
    package: '@openai/guardrails',
    setup: 'pii with PIIConfig.parse({})',
    claims: {
      email: ['EMAIL_ADDRESS'],
      phone: ['PHONE_NUMBER'],
      'credit-card': ['CREDIT_CARD'],
      iban: ['IBAN_CODE'],
      ip: ['IP_ADDRESS'],
      ssn: ['US_SSN'],
      'national-id': [
        'UK_NINO',
        'ES_NIF',
        'ES_NIE',
        'IT_FISCAL_CODE',
        'PL_PESEL',
        'AU_TFN',
        'IN_AADHAAR',
        'FI_PERSONAL_IDENTITY_CODE',
      ],
    },
    async load() {
      const { pii, PIIConfig } = await import('@openai/guardrails');
      const config = PIIConfig.parse({});
      return async (text) => Object.keys((await pii({}, text, config)).info.detected_entities);
    },
  },
  {
    name: '@openai/guardrails `Secret Keys`',
    package: '@openai/guardrails',
    setup: 'secretKeysCheck with SecretKeysConfig.parse({})',
    claims: { secrets: ANY },
    async load() {
      const { secretKeysCheck, SecretKeysConfig } = await import('@openai/guardrails');
      const config = SecretKeysConfig.parse({});
      return async (text) => found((await secretKeysCheck({}, text, config)).tripwireTriggered);
    },
  },
  {
    name: 'langchain `piiMiddleware`',
    package: 'langchain',
    setup: "piiMiddleware('email'), ('credit_card'), ('ip'), ('mac_address'), one after the other",
    claims: {
      email: ['[REDACTED_EMAIL]'],
      'credit-card': ['[REDACTED_CREDIT_CARD]'],
      ip: ['[REDACTED_IP]'],
      mac: ['[REDACTED_MAC_ADDRESS]'],
    },
    async load() {
      const { piiMiddleware } = await import('langchain');
      const { HumanMessage } = await import('@langchain/core/messages');
      const names = Object.values(this.claims).flat();
      const stack = ['email', 'credit_card', 'ip', 'mac_address'].map((type) => piiMiddleware(type));
      return async (text) => {
        let state = { messages: [new HumanMessage(text)] };
        for (const { beforeModel } of stack) state = (await beforeModel(state, { context: {} })) ?? state;
        return placeholders(names, text, String(state.messages[0].content));
      };
    },
  },
  ...[
    ['pii', { email: ['email'], phone: ['phone'], 'credit-card': ['credit-card'], ssn: ['ssn'] }],
    ['secrets', { secrets: ['api-key', 'bearer-token', 'aws-key'] }],
  ].map(([preset, claims]) => ({
    name: `@mastra/core \`RegexFilterProcessor\` (${preset})`,
    package: '@mastra/core',
    setup: `new RegexFilterProcessor({ presets: ['${preset}'] })`,
    claims,
    async load() {
      const { RegexFilterProcessor } = await import('@mastra/core/processors');
      const processor = new RegexFilterProcessor({ presets: [preset] });
      const createdAt = new Date(0);
      const abort = (reason) => {
        throw new Error(`It asked to abort: ${reason}`);
      };
      return async (text) => {
        const content = { format: 2, parts: [{ type: 'text', text }] };
        try {
          await processor.processInput({ messages: [{ id: '1', role: 'user', createdAt, content }], abort });
          return [];
        } catch (error) {
          // Its way to block is to throw a TripWire.
          if (error.options?.metadata?.processorId !== 'regex-filter') throw error;
          return error.options.metadata.matches.map(({ rule }) => rule);
        }
      };
    },
  })),
  {
    name: 'redact-pii',
    package: 'redact-pii',
    setup: 'new SyncRedactor()',
    claims: {
      email: ['EMAIL_ADDRESS'],
      phone: ['PHONE_NUMBER'],
      'credit-card': ['CREDIT_CARD_NUMBER'],
      ip: ['IP_ADDRESS'],
      ssn: ['US_SOCIAL_SECURITY_NUMBER'],
    },
    async load() {
      const { SyncRedactor } = (await import('redact-pii')).default;
      const redactor = new SyncRedactor();
      const names = Object.values(this.claims).flat();
      return (text) => placeholders(names, text, redactor.redact(text));
    },
  },
  {
    name: '@redactpii/node',
    package: '@redactpii/node',
    setup: 'new Redactor()',
    claims: {
      email: ['EMAIL_ADDRESS'],
      phone: ['PHONE_NUMBER'],
      'credit-card': ['CREDIT_CARD_NUMBER'],
      ssn: ['US_SOCIAL_SECURITY_NUMBER'],
    },
    async load() {
      const { Redactor } = await import('@redactpii/node');
      const redactor = new Redactor();
      const names = Object.values(this.claims).flat();
      return (text) => placeholders(names, text, redactor.redact(text));
    },
  },
  {
    name: '@openredaction/core',
    package: '@openredaction/core',
    setup: 'new OpenRedaction()',
    claims: {
      email: ['EMAIL'],
      phone: ['PHONE', 'PHONE_INTERNATIONAL', 'PHONE_UK', 'PHONE_UK_MOBILE', 'PHONE_US', 'PHONE_LINE_NUMBER'],
      'credit-card': ['CREDIT_CARD'],
      iban: ['IBAN', 'UK_BANK_ACCOUNT_IBAN'],
      ip: ['IPV4', 'IPV6'],
      mac: ['MAC_ADDRESS'],
      ssn: ['SSN'],
      'national-id': [
        'AUSTRALIAN_TFN',
        'BRAZILIAN_CPF',
        'CANADIAN_SIN',
        'SIN_CA',
        'DUTCH_BSN',
        'FRENCH_SOCIAL_SECURITY',
        'GERMAN_TAX_ID',
        'INDIAN_AADHAAR',
        'ITALIAN_FISCAL_CODE',
        'NATIONAL_INSURANCE_UK',
        'POLISH_PESEL',
        'SPANISH_DNI',
        'TAX_ID',
      ],
      'url-credentials': ['URL_WITH_AUTH', 'DATABASE_CONNECTION'],
      secrets: [
        'AWS_ACCESS_KEY',
        'AWS_SECRET_KEY',
        'AZURE_STORAGE_KEY',
        'BEARER_TOKEN',
        'DATABASE_CONNECTION',
        'DOCKER_AUTH',
        'FIREBASE_API_KEY',
        'GCP_SERVICE_ACCOUNT',
        'GENERIC_API_KEY',
        'GENERIC_SECRET',
        'GITHUB_TOKEN',
        'GOOGLE_API_KEY',
        'HEROKU_API_KEY',
        'JWT_TOKEN',
        'KUBERNETES_SECRET',
        'MAILGUN_API_KEY',
        'NPM_TOKEN',
        'OAUTH_CLIENT_SECRET',
        'OAUTH_TOKEN',
        'OPENAI_API_KEY',
        'PRIVATE_KEY',
        'PYPI_TOKEN',
        'SENDGRID_API_KEY',
        'SLACK_TOKEN',
        'SLACK_WEBHOOK',
        'SSH_PRIVATE_KEY',
        'STRIPE_API_KEY',
        'TWILIO_API_KEY',
        'URL_WITH_AUTH',
      ],
    },
    async load() {
      const { OpenRedaction } = await import('@openredaction/core');
      const redactor = new OpenRedaction();
      return async (text) => (await redactor.detect(text)).detections.map(({ type }) => type);
    },
  },
  {
    name: '@secretlint/core, recommended preset',
    package: '@secretlint/core',
    setup: 'lintSource with @secretlint/secretlint-rule-preset-recommend',
    claims: {
      secrets: ANY,
      'url-credentials': [
        '@secretlint/secretlint-rule-basicauth',
        '@secretlint/secretlint-rule-database-connection-string',
      ],
    },
    async load() {
      const { lintSource } = await import('@secretlint/core');
      const { creator } = await import('@secretlint/secretlint-rule-preset-recommend');
      const id = '@secretlint/secretlint-rule-preset-recommend';
      const options = { config: { rules: [{ id, rule: creator }] }, noPhysicFilePath: true };
      return async (content) => {
        const source = { filePath: 'message.txt', ext: '.txt', contentType: 'text', content };
        const { messages } = await lintSource({ source, options });
        return [...found(messages.length > 0), ...messages.map(({ ruleId }) => ruleId)];
      };
    },
  },
  ...[
    [
      'piiGuard',
      {
        email: ['[REDACTED-EMAIL]'],
        phone: ['[REDACTED-PHONE]'],
        'credit-card': ['[REDACTED-CREDIT-CARD]'],
        ip: ['[REDACTED-IP-ADDRESS]'],
        ssn: ['[REDACTED-SSN]'],
      },
    ],
    ['secretGuard', { secrets: ANY }],
  ].map(([guard, claims]) => ({
    name: `@presidio-dev/hai-guardrails \`${guard}\``,
    package: '@presidio-dev/hai-guardrails',
    setup: `GuardrailsEngine with ${guard}({ selection: SelectionType.All })`,
    claims,
    async load() {
      const library = await import('@presidio-dev/hai-guardrails');
      const guards = [library[guard]({ selection: library.SelectionType.All })];
      const engine = new library.GuardrailsEngine({ guards });
      const names = Object.values(claims).flat();
      return async (text) => {
        const { messages } = await engine.run([{ role: 'user', content: text }]);
        const after = String(messages[0].content);
        return claims.secrets ? found(after !== text) : placeholders(names, text, after);
      };
    },
  })),
  {
    name: '@presidio-dev/hai-guardrails `injectionGuard` (pattern)',
    package: '@presidio-dev/hai-guardrails',
    setup: "injectionGuard({ roles: ['user'] }, { mode: 'pattern', threshold: 0.7 })",
    claims: { injection: ANY },
    async load() {
      const { GuardrailsEngine, injectionGuard } = await import('@presidio-dev/hai-guardrails');
      const guards = [injectionGuard({ roles: ['user'] }, { mode: 'pattern', threshold: 0.7 })];
      const engine = new GuardrailsEngine({ guards });
      return async (text) => {
        const { messagesWithGuardResult } = await engine.run([{ role: 'user', content: text }]);
        return found(!messagesWithGuardResult[0].messages[0].passed);
      };
    },
  },
  {
    name: '@andersmyrmel/vard',
    package: '@andersmyrmel/vard',
    setup: 'vard(text)',
    claims: { injection: ANY },
    async load() {
      const { default: vard, PromptInjectionError } = await import('@andersmyrmel/vard');
      return (text) => {
        try {
          // What it sanitizes instead of refusing it counts as well.
          return found(vard(text).trim() !== text.trim());
        } catch (error) {
          if (error instanceof PromptInjectionError) return ANY;
          throw error;
        }
      };
    },
  },
];

/** What a user may think of, and why it has no row. */
export const LEFT_OUT = [
  ['@openai/guardrails `Jailbreak` and `Prompt Injection Detection`', 'ask a model'],
  ['@mastra/core `PIIDetector`, `PromptInjectionDetector` and `ModerationProcessor`', 'ask a model'],
  ['redact-pii with `GoogleDLPRedactor`', 'sends the text to a service'],
  [
    '@presidio-dev/hai-guardrails `injectionGuard` (heuristic)',
    'did not finish the corpus in five minutes; its pattern mode is measured',
  ],
  [
    '@presidio-dev/hai-guardrails 1.12.0',
    'after the import the process ends: it starts a worker from a path of the machine that built it; 1.11.1 is measured instead',
  ],
  [
    'addresses (`url-credentials`) of langchain, @openai/guardrails, @mastra/core and redact-pii',
    'report every address; the corpus is of passwords in addresses',
  ],
];
