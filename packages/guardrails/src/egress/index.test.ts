import { Agent, tool } from 'allium';
import { chunks, collect, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { findHosts } from './hosts.js';
import { egress } from './index.js';

testMiddleware(() => egress({ allowHosts: ['example.org'] }), {
  name: 'egress',
  // The kit's own answers have a link.
  neutral: () => egress({ allowHosts: ['example.com'] }),
  describe,
  it,
  scenarios: [
    { name: 'a link', answers: [text('See https://evil.example/?d=secret and https://example.org/a.')] },
  ],
});

const hosts = (given: string, whole = false) => findHosts(given, 0, whole).map(({ host }) => host);

describe('hosts', () => {
  it.each([
    ['https://evil.example/x', 'evil.example'],
    ['HTTPS://EVIL.example:8443/x', 'evil.example'],
    ['https://user:pw@evil.example/x', 'evil.example'],
    ['https://example.org@evil.example/x', 'evil.example'],
    ['https:\\\\evil.example\\x', 'evil.example'],
    ['ftp://evil.example', 'evil.example'],
    ['![x](//evil.example/p.png)', 'evil.example'],
    ['<img src="//evil.example/p.png">', 'evil.example'],
    ['![x](<//evil.example/p.png>)', 'evil.example'],
    ['![x]( //evil.example/p.png )', 'evil.example'],
    ['![x](\n  //user@evil.example/p.png)', 'evil.example'],
    ['[1]: //evil.example/x', 'evil.example'],
    ['[1]:\n//evil.example/x', 'evil.example'],
    ['[1]: <//evil.example/x>', 'evil.example'],
    ['[1]: //2130706433/x', '127.0.0.1'],
    ['www.evil.example/x', 'www.evil.example'],
    ['https://bücher.example/', 'xn--bcher-kva.example'],
    ['https://ｅvil.example/', 'evil.example'],
    ['https://evil%2eexample/', 'evil.example'],
    ['http://2130706433/', '127.0.0.1'],
    ['http://0x7f.1/', '127.0.0.1'],
    ['http://0177.0.0.1/', '127.0.0.1'],
    ['http://[::ffff:7f00:1]/', '[::ffff:7f00:1]'],
    ['https://evil.example./x', 'evil.example'],
    // Browsers need no slashes after these schemes, and Markdown and HTML read entities.
    ['![x](http:evil.example/p.png)', 'evil.example'],
    ['<a href=https:/evil.example/x>', 'evil.example'],
    ['![x](https&#58;//evil.example/p.png)', 'evil.example'],
    ['![x](https&colon;&sol;&sol;evil.example/p.png)', 'evil.example'],
    ['![x](https&#x3A;&#x2F;&#0047;evil.example/p.png)', 'evil.example'],
    ['![x](&#47;&#x2f;evil.example/p.png)', 'evil.example'],
    ['<img src="http:\n//evil.example/p.png">', 'evil.example'],
    ['<img src="https://example.org\n.evil.example/p.png">', 'example.org.evil.example'],
  ])('%s', (given, host) => {
    expect(hosts(`See ${given} now.`)).toEqual([host]);
  });

  it('finds bare hosts in arguments', () => {
    expect(hosts('evil.example', true)).toEqual(['evil.example']);
    expect(hosts('evil.example:443/x', true)).toEqual(['evil.example']);
    expect(hosts('10.0.0.1', true)).toEqual(['10.0.0.1']);
    expect(hosts('0x7f000001', true)).toEqual(['127.0.0.1']);
    for (const other of ['index.ts', 'a sentence. here', '12345678', 'hello', 'v1.2'])
      expect(hosts(other, true), other).toEqual([]);
  });

  it.each([')', '.', '(', '&#47;', 'http:', '&#58;', '"http:\n', '://a'])(
    'takes time proportional to a text of %j',
    (piece) => {
      const took = (size: number) => {
        const given = `https://evil.example/${piece.repeat(size / piece.length)}`;
        const start = process.cpuUsage().user;
        hosts(given);
        return process.cpuUsage().user - start;
      };
      took(20_000);
      expect(took(400_000)).toBeLessThan(100 * Math.max(took(20_000), 2000));
    },
  );

  it('leaves anything but addresses alone', () => {
    expect(
      hosts(
        'http: the protocol, http:later, case https:\n// then, a & b, &#47; is a slash, a // comment, f( //todo later), x = //why, list[0]: //first one, C:\\x, 12:30, std::x, e.g. this, mailto:a@x.org, data:text/plain,hi',
      ),
    ).toEqual([]);
  });
});

async function answered(...pieces: string[]): Promise<string> {
  const middleware = [egress({ allowHosts: ['example.org', '*.example.org'] })];
  const { events, result } = await collect(
    new Agent({ model: scriptedModel([chunks(...pieces)]), middleware }).stream('Hi'),
  );
  expect(JSON.stringify(events)).not.toContain('evil');
  return result!.text;
}

describe('egress', () => {
  it('cuts links to other hosts while they stream, and leaves the rest', async () => {
    expect(await answered('See https://ev', 'il.example/?d=sec', 'ret) or https://docs.example.org/a.')).toBe(
      'See [link removed]) or https://docs.example.org/a.',
    );
    expect(await answered('![x](https://evil.example/p.png?d=1) ok')).toBe('![x]([link removed]) ok');
    expect(await answered('https://example.org.', 'evil.example/')).toBe('[link removed]');
  });

  it('cuts them out of arguments', async () => {
    const seen: unknown[] = [];
    const fetcher = tool({
      name: 'get',
      description: 'Gets.',
      input: z.any(),
      execute: (args) => String(seen.push(args)),
    });
    const model = scriptedModel([
      toolCalls({
        name: 'get',
        args: { url: 'http://0x7f.1/x', host: 'evil.example', ok: 'https://example.org/' },
      }),
      text('Done.'),
    ]);
    await new Agent({ model, tools: [fetcher], middleware: [egress({ allowHosts: ['example.org'] })] }).run(
      'Go',
    );
    expect(seen).toEqual([{ url: '[link removed]', host: '[link removed]', ok: 'https://example.org/' }]);
  });

  it('compares hosts as browsers spell them', async () => {
    const agent = new Agent({
      model: scriptedModel(['https://xn--bcher-kva.example/']),
      middleware: [egress({ allowHosts: ['Bücher.example'] })],
    });
    expect((await agent.run('Hi')).text).toBe('https://xn--bcher-kva.example/');
  });

  it('refuses an invalid host', () => {
    expect(() => egress({ allowHosts: ['a b'] })).toThrow('Expected `allowHosts[0]` to be a host');
  });
});
