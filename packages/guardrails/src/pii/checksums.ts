/** Check digits of cards, accounts and national ids. Each takes digits (or letters) without separators. */

export function luhn(digits: string): boolean {
  let sum = 0;
  let double = false;
  for (let i = digits.length - 1; i >= 0; i--) {
    let value = digits.charCodeAt(i) - 48;
    if (double) {
      value *= 2;
      if (value > 9) value -= 9;
    }
    sum += value;
    double = !double;
  }
  return sum % 10 === 0;
}

/** The remainder of a number of any length, whose letters count 10 to 35. */
export function mod97(text: string): number {
  let rest = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    rest = code <= 57 ? (rest * 10 + code - 48) % 97 : (rest * 100 + code - 55) % 97;
  }
  return rest;
}

const VERHOEFF_PRODUCT = [
  '0123456789',
  '1234067895',
  '2340178956',
  '3401289567',
  '4012395678',
  '5987604321',
  '6598710432',
  '7659821043',
  '8765932104',
  '9876543210',
];
const VERHOEFF_SHIFT = [
  '0123456789',
  '1576283094',
  '5803796142',
  '8916043527',
  '9453126870',
  '4286573901',
  '2793806415',
  '7046913258',
];

export function verhoeff(digits: string): boolean {
  let check = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    check = Number(VERHOEFF_PRODUCT[check]![Number(VERHOEFF_SHIFT[i % 8]![digit]!)]!);
  }
  return check === 0;
}

/** Sum of digits times weights. */
export function weighted(digits: string, weights: readonly number[]): number {
  return weights.reduce((sum, weight, i) => sum + weight * (digits.charCodeAt(i) - 48), 0);
}

/** ISO 7064 Mod 11,10, as in German tax numbers. */
export function mod11And10(digits: string): boolean {
  let product = 10;
  for (let i = 0; i < digits.length - 1; i++) {
    const sum = (digits.charCodeAt(i) - 48 + product) % 10 || 10;
    product = (sum * 2) % 11;
  }
  return (11 - product) % 10 === digits.charCodeAt(digits.length - 1) - 48;
}

/** Is it a day of some year? `year` decides about the 29th of February; without it the 29th passes. */
export function isDay(month: number, day: number, year = 2000): boolean {
  return month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}
