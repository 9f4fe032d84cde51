/** A browser and its system in a few words, of the long line that it says of itself. */

/** The first that is found counts: most browsers name others as well, to be taken for them. */
const BROWSERS: readonly (readonly [string, RegExp])[] = [
  ['Edge', /\bEdg(?:A|iOS)?\/(\d{1,5})/],
  ['Opera', /\bOPR\/(\d{1,5})/],
  ['Samsung Internet', /\bSamsungBrowser\/(\d{1,5})/],
  ['Firefox', /\b(?:Firefox|FxiOS)\/(\d{1,5})/],
  ['Chrome', /\b(?:HeadlessChrome|Chrome|CriOS)\/(\d{1,5})/],
  ['Safari', /\bVersion\/(\d{1,5})[\d.]{0,20} (?:Mobile\/\w{1,20} )?Safari\//],
];
const SYSTEMS: readonly (readonly [string, RegExp])[] = [
  ['Windows', /\bWindows\b/],
  ['Android', /\bAndroid\b/],
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['macOS', /\bMac OS X\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['Linux', /\bLinux\b/],
];
/** Of one that is not known: its own first word. */
const LONGEST = 30;

/** Such as `Chrome 120, Linux`; empty where it says nothing. */
export function browserName(said: string): string {
  const browsers = BROWSERS.flatMap(([name, pattern]) => {
    const version = pattern.exec(said)?.[1];
    return version === undefined ? [] : [`${name} ${version}`];
  });
  const [browser] = browsers;
  if (browser === undefined) return said.trim().split(/\s/)[0]?.slice(0, LONGEST).replace('/', ' ') ?? '';
  const system = SYSTEMS.find(([, pattern]) => pattern.test(said))?.[0];
  return system === undefined ? browser : `${browser}, ${system}`;
}
