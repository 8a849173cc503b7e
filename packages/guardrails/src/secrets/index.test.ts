import { Agent } from 'allium';
import { chunks, collect, scriptedModel, testMiddleware, text } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { secretDetector } from './detect.js';
import { SECRET_FORMATS } from './formats.js';
import { secrets } from './index.js';

// Made up here, in pieces, so that no scanner takes this file for a leak.
const GITHUB = `ghp_${'k3Jd9sLq2ZxW8vBn4RtYu7PmA1cE6fGh0Ij5'}`;
const AWS = `AKIA${'Z7QW3RT5YU2PASDF'}`;
const JWT = ['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiIxMjM0In0', 'k3Jd9sLq2ZxW8vBn4RtYu7PmA1cE6fGh0'].join('.');
const PEM = `-----BEGIN RSA PRIVATE ${'KEY'}-----\n${'MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo\n'.repeat(20)}-----END RSA PRIVATE ${'KEY'}-----`;

testMiddleware(() => secrets(), {
  name: 'secrets',
  describe,
  it,
  scenarios: [{ name: 'a key in an answer', answers: [text(`It is ${GITHUB}.`)] }],
});

const detect = secretDetector({ entropy: true });
const found = (given: string) =>
  detect(given, 0).map(({ start, end, kind }) => [kind, given.slice(start, end)]);

describe('what secrets finds', () => {
  it.each([
    ['github-token', GITHUB],
    ['aws-access-key', AWS],
    ['jwt', JWT],
    ['private-key', PEM],
  ])('%s', (kind, value) => {
    expect(found(`Use ${value} here.`)).toEqual([[kind, value]]);
    expect(found(`{"key":"${value}"}`)).toEqual([[kind, value]]);
  });

  it.each([
    ['postgres://app:s3cr3t-Pw@db:5432/x', 's3cr3t-Pw'],
    ['Server=db;User Id=sa;Password=Tr0ub4dor;', 'Tr0ub4dor'],
    ['Authorization: Bearer k3Jd9sLq2ZxW8vBn4RtYu7Pm', 'k3Jd9sLq2ZxW8vBn4RtYu7Pm'],
    ['DB_PASSWORD="x9$Kq2!vLm"', 'x9$Kq2!vLm'],
    ['api_key: 9f8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d', '9f8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d'],
    ['The password is Xk9#mQ2$vL', 'Xk9#mQ2$vL'],
  ])('%s', (given, value) => {
    expect([...new Set(found(given).map(([, one]) => one))]).toEqual([value]);
  });

  it.each([
    'AKIAIOSFODNN7EXAMPLE',
    'ghp_1234567890abcdefghijklmnopqrstuvwxyz',
    'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH',
    'xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx',
    'AIzaSyA1234567890abcdefghijklmnopqrstuv',
    'glpat-abcdefghij0123456789',
    'npm_abcdefghijklmnopqrstuvwxyz0123456789',
  ])('a made-up key with the form of a real one: %s', (key) => {
    expect(found(`Use ${key} here`).map(([, value]) => value)).toEqual([key]);
  });

  it('knows more than sixty formats', () => {
    expect(new Set(SECRET_FORMATS.map(({ kind }) => kind)).size).toBeGreaterThan(55);
  });

  it.each([
    'commit 9f8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d01234567',
    'id f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4',
    'const token = process.env.GITHUB_TOKEN; password: string; secret = getSecret(name);',
    'API_KEY=your-api-key-here and ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    'The password is required. Token: expired. secret: undefined',
    'postgres://user:$DB_PASSWORD@host/db and redis://localhost:6379',
    'A PEM file begins with -----BEGIN PRIVATE KEY----- and ends likewise.',
    'sha512-tIOCM9yx2Go6d5/ZANe0K+G4AZek1Ymx81HxQpf19Sri4zMP95eQbKdnUGHAvFQ4nx0PeLhFqvAfisTADXj3tQ==',
  ])('leaves alone: %s', (given) => {
    expect(found(given)).toEqual([]);
  });
});

describe('secrets', () => {
  it.each([1, 3, 17, 64])(
    'holds back a private key that is longer than the window, in pieces of %i',
    async (size) => {
      const answer = `Here: ${PEM} That was it.`;
      const pieces = answer.match(new RegExp(`[^]{1,${size}}`, 'g'))!;
      const agent = new Agent({ model: scriptedModel([chunks(...pieces)]), middleware: [secrets()] });
      const { events, result } = await collect(agent.stream('Which?'));
      expect(result?.text).toBe('Here: [private-key] That was it.');
      expect(JSON.stringify(events)).not.toContain('MIIE');
    },
  );

  it('also cuts a key whose end never comes', async () => {
    const agent = new Agent({ model: scriptedModel([PEM.slice(0, 400)]), middleware: [secrets()] });
    expect((await agent.run('Which?')).text).toBe('[private-key]');
  });

  it('lets allowed values pass, and leaves random text alone if told to', async () => {
    const said = `${GITHUB} password=x9$Kq2!vLm`;
    const model = scriptedModel([said, said]);
    const agent = new Agent({ model, middleware: [secrets({ allow: [GITHUB], entropy: false })] });
    expect((await agent.run('Which?')).text).toBe(said);
  });

  it('ends the run if told to', async () => {
    const agent = new Agent({
      model: scriptedModel([`It is ${AWS}`]),
      middleware: [secrets({ action: 'stop' })],
    });
    expect(await agent.run('Which?')).toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', by: 'secrets' },
    });
  });

  it('refuses an option it does not know', () => {
    expect(() => secrets({ entropie: true } as never)).toThrow('Did you mean `entropy`?');
  });
});
