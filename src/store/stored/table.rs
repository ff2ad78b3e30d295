//! Tables of fields and variants, and what is made of them; not the tables themselves.

use super::{Stored, length};
use minicbor::{Decoder, data::Type, decode};

/// Stores structs. A field's number is its place; new fields are put at the end. Those after `but`
/// are not stored. Those after `unused` were once; they are read over, and `then` goes on behind them.
macro_rules! stored_structs {
    ($($name:ident { $($field:ident),* $(,)? $(; unused $($unused:ident),*; then $($late:ident),* $(,)?)? $(; but $($left:ident),*)? })*) => {
        $(impl crate::store::stored::Stored for $name {
            fn put(&self, out: &mut crate::store::stored::Out) -> crate::store::stored::Written {
                let Self { $($field,)* $($($late,)*)? $($($left: _,)*)? } = self;
                let written = [
                    $(!crate::store::stored::Stored::is_missing($field),)*
                    $($({ let _ = stringify!($unused); false },)* $(!crate::store::stored::Stored::is_missing($late),)*)?
                ];
                let count = written.iter().rposition(|is_written| *is_written).map_or(0, |last| last + 1);
                out.array(count as u64)?;
                let mut place = 0;
                $(
                    if place < count {
                        crate::store::stored::Stored::put($field, out)?;
                    }
                    place += 1;
                )*
                $(
                    $(
                        let _ = stringify!($unused);
                        if place < count {
                            out.null()?;
                        }
                        place += 1;
                    )*
                    $(
                        if place < count {
                            crate::store::stored::Stored::put($late, out)?;
                        }
                        place += 1;
                    )*
                )?
                debug_assert!(count <= place);
                Ok(())
            }

            fn take(
                input: &mut minicbor::Decoder<'_>,
            ) -> Result<Self, minicbor::decode::Error> {
                let known = [$(stringify!($field),)* $($(stringify!($unused),)* $(stringify!($late),)*)?].len();
                let mut fields = crate::store::stored::table::Fields::begin(input, known)?;
                $(let $field = fields.next(input, stringify!($field))?;)*
                $(
                    $(
                        let _ = stringify!($unused);
                        fields.skip(input)?;
                    )*
                    $(let $late = fields.next(input, stringify!($late))?;)*
                )?
                Ok(Self {
                    $($field,)*
                    $($($late,)*)?
                    $($($left: Default::default(),)*)?
                })
            }
        })*
    };
}

/// Stores enums: a variant without fields is its number, one with fields a list of its number and
/// them.
macro_rules! stored_enums {
    ($($name:ident { $($no:literal $variant:ident $(($($unnamed:ident),*))? $({ $($named:ident),* })?),* $(,)? })*) => {
        $(impl crate::store::stored::Stored for $name {
            fn put(&self, out: &mut crate::store::stored::Out) -> crate::store::stored::Written {
                match self {
                    $(Self::$variant $(($($unnamed),*))? $({ $($named),* })? => {
                        let fields: usize = 0 $($(+ { let _ = stringify!($unnamed); 1 })*)? $($(+ { let _ = stringify!($named); 1 })*)?;
                        if fields > 0 {
                            out.array(1 + fields as u64)?;
                        }
                        out.u32($no)?;
                        $($(crate::store::stored::Stored::put($unnamed, out)?;)*)?
                        $($(crate::store::stored::Stored::put($named, out)?;)*)?
                    })*
                }
                Ok(())
            }

            #[allow(unused_mut, unused_variables, reason = "An enum may have no variant with fields.")]
            fn take(
                input: &mut minicbor::Decoder<'_>,
            ) -> Result<Self, minicbor::decode::Error> {
                let (no, mut fields) = crate::store::stored::table::Fields::of_variant(input)?;
                let value = match no {
                    $($no => Self::$variant
                        $(($({ let $unnamed = fields.next(input, stringify!($unnamed))?; $unnamed }),*))?
                        $({ $($named: fields.next(input, stringify!($named))?),* })?,)*
                    other => {
                        let text = format!("{} has no variant {other}", stringify!($name));
                        return Err(minicbor::decode::Error::message(text));
                    }
                };
                fields.end()?;
                Ok(value)
            }
        })*
    };
}

/// Stores types around one value as that value.
macro_rules! stored_newtypes {
    ($($name:ident)*) => {
        $(impl crate::store::stored::Stored for $name {
            fn put(&self, out: &mut crate::store::stored::Out) -> crate::store::stored::Written {
                let Self(value) = self;
                crate::store::stored::Stored::put(value, out)
            }

            fn take(
                input: &mut minicbor::Decoder<'_>,
            ) -> Result<Self, minicbor::decode::Error> {
                crate::store::stored::Stored::take(input).map(Self)
            }
        })*
    };
}

pub(super) use {stored_enums, stored_newtypes, stored_structs};

/// The fields of a struct or a variant as they are read.
pub(super) struct Fields {
    left: usize,
}

impl Fields {
    /// Those of a struct of which so many are known.
    pub(super) fn begin(input: &mut Decoder<'_>, known: usize) -> Result<Self, decode::Error> {
        let left = length(input)?;
        if left > known {
            let text = format!(
                "it has {left} fields and this everfeed knows {known}: a newer one wrote it"
            );
            return Err(decode::Error::message(text));
        }
        Ok(Self { left })
    }

    /// The number of a variant, and its fields.
    pub(super) fn of_variant(input: &mut Decoder<'_>) -> Result<(u32, Self), decode::Error> {
        if !matches!(input.datatype()?, Type::Array | Type::ArrayIndef) {
            return Ok((input.u32()?, Self { left: 0 }));
        }
        let left = length(input)?.checked_sub(1);
        let left = left.ok_or_else(|| decode::Error::message("a variant has no number"))?;
        Ok((input.u32()?, Self { left }))
    }

    /// The next field.
    pub(super) fn next<T: Stored>(
        &mut self,
        input: &mut Decoder<'_>,
        name: &str,
    ) -> Result<T, decode::Error> {
        if self.left > 0 {
            self.left -= 1;
            return T::take(input);
        }
        T::missing().ok_or_else(|| decode::Error::message(format!("the field {name} is missing")))
    }

    /// Reads over a field that is not used any more.
    pub(super) fn skip(&mut self, input: &mut Decoder<'_>) -> Result<(), decode::Error> {
        if self.left > 0 {
            self.left -= 1;
            input.skip()?;
        }
        Ok(())
    }

    /// Refuses a variant with more fields than are known.
    pub(super) fn end(self) -> Result<(), decode::Error> {
        match self.left {
            0 => Ok(()),
            left => Err(decode::Error::message(format!(
                "a variant has {left} fields too many"
            ))),
        }
    }
}
