// All sentences for tuning. Nothing here opens the set of the report.

import * as fifth from './fifth-set.mjs';
import * as first from './first-sets.mjs';
import * as fourth from './fourth-set.mjs';
import * as second from './second-set.mjs';
import * as third from './third-set.mjs';
import * as attacks from './tuning-attacks.mjs';
import * as benign from './tuning-benign.mjs';
import * as more from './tuning-more.mjs';
import * as wider from './tuning-wider.mjs';

/** The sets for tuning. Those that were written at another time are a better test of each other than parts of one. */
const TUNING = { first, second, third, fourth, fifth, attacks: { ...benign, ...attacks }, more, wider };

const joined = (name) => Object.values(TUNING).flatMap((set) => set[name] ?? []);

const languages = {};
for (const { LANGUAGES } of Object.values(TUNING))
  for (const [language, texts] of Object.entries(LANGUAGES)) {
    languages[language] ??= [];
    languages[language].push(...texts);
  }

/** Sentence → the set for tuning that it stands in. */
export const setOf = new Map(
  Object.entries(TUNING).flatMap(([name, { ORDERS, INDIRECT, LANGUAGES, BENIGN, DOCUMENTS = [] }]) =>
    [...ORDERS, ...INDIRECT, ...Object.values(LANGUAGES).flat(), ...BENIGN, ...DOCUMENTS].map((text) => [
      text,
      name,
    ]),
  ),
);

export const TUNING_SET = {
  ORDERS: joined('ORDERS'),
  GOALS: joined('GOALS'),
  CARRIERS: joined('CARRIERS'),
  INDIRECT: joined('INDIRECT'),
  LANGUAGES: languages,
  BENIGN: joined('BENIGN'),
  DOCUMENTS: joined('DOCUMENTS'),
  PADDING: [
    '',
    'Hello! ',
    'I have a question about my order. ',
    'Thanks for your help so far. ',
    'We met last week about the contract. ',
    'Quick question. ',
    'Dear team, ',
  ],
  ENDINGS: ['', ' Thanks!', ' Best, Ann', ' Regards, the team', ' Kind regards, Lee'],
};
