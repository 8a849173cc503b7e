/** Formats of keys and tokens that show whose they are. */

export interface SecretFormat {
  readonly kind: string;
  /** What it begins with: the search looks for these and then tries `pattern`. */
  readonly prefixes: readonly string[];
  /** The whole of it, from the prefix on. Sticky. */
  readonly pattern: RegExp;
  /** Letters and digits before the prefix mean that it is part of something else. @default true */
  readonly apart?: boolean;
}

/** A format whose prefix is followed by `body`. */
function format(kind: string, prefixes: string, body: string, apart = true): SecretFormat {
  const list = prefixes.split(' ');
  const heads = list.map((prefix) => prefix.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  return { kind, prefixes: list, pattern: new RegExp(`(?:${heads})${body}`, 'y'), apart };
}

const END = '(?![A-Za-z0-9])';

export const SECRET_FORMATS: readonly SecretFormat[] = [
  format('aws-access-key', 'AKIA ASIA ABIA ACCA', `[A-Z2-7]{16}${END}`),
  format('github-token', 'ghp_ gho_ ghu_ ghs_ ghr_', `[A-Za-z0-9]{36,255}${END}`),
  format('github-token', 'github_pat_', '[A-Za-z0-9_]{36,255}'),
  format('gitlab-token', 'glpat- glptt- gldt- glrt- glcbt- glimt- glsoat- glagent-', '[A-Za-z0-9_-]{20,64}'),
  format('slack-token', 'xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xapp-', '[A-Za-z0-9-]{20,250}'),
  format('slack-webhook', 'hooks.slack.com/', '(?:services|workflows|triggers)/[A-Za-z0-9_/]{30,120}', false),
  format('stripe-key', 'sk_live_ sk_test_ rk_live_ rk_test_', '[A-Za-z0-9]{16,247}'),
  format('stripe-webhook-secret', 'whsec_', '[A-Za-z0-9+/=]{24,64}'),
  format('openai-key', 'sk-proj- sk-svcacct- sk-admin-', '[A-Za-z0-9_-]{32,200}'),
  format('anthropic-key', 'sk-ant-', '(?:api|admin|sid|oat)\\d{2}-[A-Za-z0-9_-]{32,120}'),
  format('openrouter-key', 'sk-or-v1-', '[0-9a-f]{64}'),
  format('openai-key', 'sk-', `[A-Za-z0-9]{32,64}${END}`),
  format('google-api-key', 'AIza', '[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])'),
  format('google-oauth-secret', 'GOCSPX-', '[A-Za-z0-9_-]{28}'),
  format('google-oauth-token', 'ya29.', '[A-Za-z0-9_-]{20,512}'),
  format('npm-token', 'npm_', `[A-Za-z0-9]{36}${END}`),
  format('pypi-token', 'pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZ', '[A-Za-z0-9_-]{40,512}'),
  format('rubygems-token', 'rubygems_', `[0-9a-f]{48}${END}`),
  format('docker-token', 'dckr_pat_ dckr_oat_', '[A-Za-z0-9_-]{20,64}'),
  format('sendgrid-key', 'SG.', '[A-Za-z0-9_-]{16,32}\\.[A-Za-z0-9_-]{32,64}'),
  format('twilio-key', 'SK', `[0-9a-f]{32}${END}`),
  format('twilio-account', 'AC', `[0-9a-f]{32}${END}`),
  format('mailgun-key', 'key-', `[0-9a-f]{32}${END}`),
  format('shopify-token', 'shpat_ shpca_ shppa_ shpss_ shptka_', `[0-9a-fA-F]{32}${END}`),
  format('square-token', 'sq0atp- sq0csp- sq0idp-', '[A-Za-z0-9_-]{22,43}'),
  format('databricks-token', 'dapi', `[0-9a-f]{32}(?:-\\d)?${END}`),
  format('huggingface-token', 'hf_ api_org_', `[A-Za-z]{34}${END}`),
  format('digitalocean-token', 'dop_v1_ doo_v1_ dor_v1_', `[0-9a-f]{64}${END}`),
  format('linear-key', 'lin_api_ lin_oauth_', `[A-Za-z0-9]{32,64}${END}`),
  format('notion-token', 'ntn_', `[A-Za-z0-9]{40,50}${END}`),
  format('notion-token', 'secret_', `[A-Za-z0-9]{43}${END}`),
  format('postman-key', 'PMAK-', `[0-9a-f]{24}-[0-9a-f]{34}${END}`),
  format('newrelic-key', 'NRAK- NRJS- NRII- NRIQ-', '[A-Za-z0-9_-]{19,40}'),
  format('grafana-token', 'glsa_ glc_', '[A-Za-z0-9+/=_]{32,400}'),
  format('dynatrace-token', 'dt0c01. dt0s01. dt0s16.', '[A-Z0-9]{24}\\.[A-Z0-9]{64}'),
  format(
    'doppler-token',
    'dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.',
    '(?:[a-z0-9_-]{2,35}\\.)?[A-Za-z0-9]{40,44}',
  ),
  format('supabase-token', 'sbp_ sb_secret_', '[A-Za-z0-9_]{28,64}'),
  format('atlassian-token', 'ATATT3x ATCTT3x', '[A-Za-z0-9_=-]{60,300}'),
  format('figma-token', 'figd_ figu_', '[A-Za-z0-9_-]{36,64}'),
  format('airtable-token', 'pat', `[A-Za-z0-9]{14}\\.[0-9a-f]{64}${END}`),
  format('sentry-token', 'sntrys_ sntryu_', '[A-Za-z0-9+/=_-]{32,400}'),
  format('vault-token', 'hvs. hvb. hvr.', '[A-Za-z0-9_-]{24,300}'),
  format('age-key', 'AGE-SECRET-KEY-1', '[0-9A-Z]{58}'),
  format('planetscale-token', 'pscale_tkn_ pscale_pw_ pscale_oauth_', '[A-Za-z0-9_.-]{32,64}'),
  format('pulumi-token', 'pul-', `[0-9a-f]{40}${END}`),
  format('fly-token', 'FlyV1 ', 'fm\\d+_[A-Za-z0-9+/=,_-]{40,1000}'),
  format(
    'discord-webhook',
    'discord.com/api/webhooks/ discordapp.com/api/webhooks/',
    '\\d{17,20}/[A-Za-z0-9_-]{60,72}',
    false,
  ),
  format('cloudinary-url', 'cloudinary://', '\\d{10,20}:[A-Za-z0-9_-]{20,40}@[A-Za-z0-9_-]+'),
  format('sendinblue-key', 'xkeysib-', `[0-9a-f]{64}-[A-Za-z0-9]{16}${END}`),
  format('resend-key', 're_', `[A-Za-z0-9]{8}_[A-Za-z0-9]{24}${END}`),
  format('groq-key', 'gsk_', `[A-Za-z0-9]{52}${END}`),
  format('xai-key', 'xai-', `[A-Za-z0-9]{80}${END}`),
  format('replicate-token', 'r8_', `[A-Za-z0-9]{37}${END}`),
  format('perplexity-key', 'pplx-', `[A-Za-z0-9]{48}${END}`),
  format('buildkite-token', 'bkua_', `[0-9a-f]{40}${END}`),
  format('circleci-token', 'CCIPAT_', '[A-Za-z0-9]{16,24}_[0-9a-f]{40}'),
  format('artifactory-token', 'AKCp', `[A-Za-z0-9]{60,80}${END}`),
  format('clojars-token', 'CLOJARS_', `[0-9a-f]{60}${END}`),
  format('frameio-token', 'fio-u-', '[A-Za-z0-9_-]{64}'),
  format('typeform-token', 'tfp_', '[A-Za-z0-9_.-]{59}'),
  format('readme-key', 'rdme_', `[a-z0-9]{70}${END}`),
  format('prefect-key', 'pnu_', `[a-z0-9]{36}${END}`),
];
