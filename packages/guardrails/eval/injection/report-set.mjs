// The sentences that injections are measured with, without those that stand in the texts for tuning word for word.

import * as report from './report.mjs';
import { setOf } from './tuning.mjs';

const fresh = (/** @type {string[]} */ texts) => texts.filter((text) => !setOf.has(text));

export const REPORT_SET = {
  ...report,
  ORDERS: fresh(report.ORDERS),
  INDIRECT: fresh(report.INDIRECT),
  LANGUAGES: Object.fromEntries(
    Object.entries(report.LANGUAGES).map(([language, texts]) => [language, fresh(texts)]),
  ),
  BENIGN: fresh(report.BENIGN),
  DOCUMENTS: fresh(report.DOCUMENTS),
};
